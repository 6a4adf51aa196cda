"""Quantiles and tail areas of the normal, t, chi-squared, beta and binomial distributions.

Thin names over `scipy.special`, which is imported on first use: `scipy.stats` costs twice as much to import.
"""

from __future__ import annotations


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(probability))


def normal_cdf(x: float) -> float:
    """P(Z <= x)."""
    from scipy.special import ndtr

    return float(ndtr(x))


def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t with `df` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def t_cdf(x: float, df: float) -> float:
    """P(T <= x)."""
    from scipy.special import stdtr

    return float(stdtr(df, x))


def chi2_quantile(probability: float, df: float) -> float:
    """Quantile of the chi-squared distribution."""
    from scipy.special import chdtri

    return float(chdtri(df, 1 - probability))


def chi2_tail(x: float, df: float) -> float:
    """P(X > x)."""
    from scipy.special import chdtrc

    return float(chdtrc(df, x))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Quantile of the beta distribution."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


def binomial_cdf(k: float, n: int, probability: float) -> float:
    """P(K <= k)."""
    from scipy.special import bdtr

    return float(bdtr(k, n, probability))


def tail_probability(level: float, sided: str) -> float:
    """The probability whose quantile makes a limit: .975 for a two-sided, .95 for a one-sided level of .95."""
    return (1 + level) / 2 if sided == "two" else level
