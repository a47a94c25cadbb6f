"""Named results of ops that return several tensors."""

from __future__ import annotations

from collections import namedtuple

max = namedtuple("max", ("values", "indices"))
min = namedtuple("min", ("values", "indices"))
aminmax = namedtuple("aminmax", ("min", "max"))
cummax = namedtuple("cummax", ("values", "indices"))
cummin = namedtuple("cummin", ("values", "indices"))
median = namedtuple("median", ("values", "indices"))
nanmedian = namedtuple("nanmedian", ("values", "indices"))
mode = namedtuple("mode", ("values", "indices"))
frexp = namedtuple("frexp", ("mantissa", "exponent"))
histogram = namedtuple("histogram", ("hist", "bin_edges"))
histogramdd = namedtuple("histogramdd", ("hist", "bin_edges"))
sort = namedtuple("sort", ("values", "indices"))
topk = namedtuple("topk", ("values", "indices"))
kthvalue = namedtuple("kthvalue", ("values", "indices"))
