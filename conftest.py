"""A package is imported before the modules in it.

Pytest imports a file of doctests by its path, and then names it in its package: ``policies.ucb1`` would be the module,
and no longer the function of that name.
"""

import dpbandits.policies  # noqa: F401
