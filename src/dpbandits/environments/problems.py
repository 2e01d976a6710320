"""The problems of the papers, by name."""

from __future__ import annotations

#: Ren et al. 2020 (section 4 and appendix B), Azize & Basu 2022 (section 5), Tossou & Dimitrakakis 2016 (section 4).
PROBLEMS = {
    "ren2020-bernoulli": "bernoulli(0.9)+5*bernoulli(0.8)+5*bernoulli(0.7)+5*bernoulli(0.6)+4*bernoulli(0.5)",
    "ren2020-mixed": "bernoulli(0.9)+5*beta(4,1)+5*choice(0.4,1)+5*bernoulli(0.6)+4*uniform(0,1)",
    "ren2020-gaussian": "normal(0.9,1)+5*normal(0.8,1)+5*normal(0.7,1)+5*normal(0.6,1)+4*normal(0.5,1)",
    "azize2022-c1": "0.75,0.7,0.7,0.7,0.7",
    "azize2022-c2": "0.75,0.625,0.5,0.375,0.25",
    "azize2022-c3": "0.75,0.53125,0.375,0.28125,0.25",
    "azize2022-c4": "0.75,0.71875,0.625,0.46875,0.25",
    "azize2022-fig3": "0.8,0.1,0.1,0.1,0.1",
    "tossou2016-two": "0.9,0.6",
    "tossou2016-ten": "0.1,0.1,0.1,0.1,0.2,0.55,0.1,0.1,0.1,0.1",
}
