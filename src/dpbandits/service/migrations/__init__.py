"""The history of the tables. A server brings its database up to date when it starts."""
