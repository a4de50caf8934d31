"""The words that a query may be made of: syntax, types and functions. What is not here is refused.

Functions are those of Spark that compute a value from values. Not here is whatever reaches out of
the query: Java methods, files, settings, the session and its user, the network.
"""

from sqlglot import exp

__all__ = ["FUNCTIONS", "SYNTAX", "TABLE_FUNCTIONS", "TYPES"]

SYNTAX: frozenset[type[exp.Expr]] = frozenset(
    {
        # a query and its clauses
        *(exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With, exp.CTE),
        *(exp.From, exp.Table, exp.TableAlias, exp.Version, exp.Join, exp.Lateral, exp.Values),
        *(exp.Where, exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Having, exp.Order),
        *(exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Tuple),
        # names and values
        *(exp.Identifier, exp.Column, exp.Dot, exp.Star, exp.Alias, exp.Aliases, exp.Paren),
        *(exp.Literal, exp.Boolean, exp.Null, exp.HexString, exp.Interval, exp.Var, exp.Concat),
        *(exp.CurrentDate, exp.CurrentTimestamp, exp.Bracket, exp.Slice),
        # conditions and arithmetic
        *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT),
        *(exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
        *(exp.RegexpLike, exp.Exists, exp.Escape, exp.Case, exp.If),
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe),
        *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
        # calls
        *(exp.Anonymous, exp.Lambda, exp.Filter, exp.Window, exp.WindowSpec, exp.WithinGroup),
        *(exp.IgnoreNulls, exp.RespectNulls, exp.Cast, exp.TryCast, exp.DataType),
        *(exp.DataTypeParam, exp.ColumnDef, exp.Extract, exp.Trim, exp.Substring),
    }
)

TYPES = frozenset(
    {
        *("ARRAY", "BIGINT", "BINARY", "BOOLEAN", "CHAR", "DATE", "DECIMAL", "DOUBLE", "FLOAT"),
        *("INT", "MAP", "SMALLINT", "STRUCT", "TEXT", "TIMESTAMP", "TIMESTAMPLTZ", "TIMESTAMPNTZ"),
        *("TIMESTAMPTZ", "TINYINT", "VARCHAR", "VARIANT"),
    }
)

TABLE_FUNCTIONS = frozenset(
    {
        *("explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode"),
        *("posexplode_outer", "range", "stack", "variant_explode", "variant_explode_outer"),
    }
)

_AGGREGATES = """
any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and
bool_or collect_list collect_set corr count count_if covar_pop covar_samp every first first_value
grouping grouping_id histogram_numeric kurtosis last last_value listagg max max_by mean median min
min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance
"""
_WINDOWS = """
cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window
window_time
"""
_NUMBERS = """
abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos
cosh cot csc degrees e exp expm1 factorial floor getbit greatest hypot isnan least ln log log10
log1p log2 mod nanvl negative pi pmod positive pow power radians rand randn rint round sec shiftleft
shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod
try_multiply try_subtract width_bucket
"""
_TEXTS = """
ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains crc32
decode elt encode endswith find_in_set format_number format_string hash hex initcap instr
is_valid_utf8 lcase left len length levenshtein locate lower lpad ltrim luhn_check make_valid_utf8
mask md5 octet_length overlay position printf regexp regexp_count regexp_extract regexp_extract_all
regexp_instr regexp_like regexp_replace regexp_substr repeat replace right rlike rpad rtrim
sentences sha sha1 sha2 soundex space split split_part startswith string substr substring
substring_index to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number
ucase unbase64 unhex upper xxhash64
"""
_TIMES = """
add_months convert_timezone curdate current_date current_timestamp date date_add date_diff
date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname
dayofmonth dayofweek dayofyear from_unixtime from_utc_timestamp hour last_day make_date
make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval
minute month monthname months_between next_day now quarter second timestamp timestamp_micros
timestamp_millis timestamp_seconds to_date to_timestamp to_timestamp_ltz to_timestamp_ntz
to_unix_timestamp to_utc_timestamp trunc try_to_date try_to_timestamp unix_date unix_micros
unix_millis unix_seconds unix_timestamp weekday weekofyear year
"""
_COLLECTIONS = """
aggregate array array_append array_compact array_contains array_distinct array_except array_insert
array_intersect array_join array_max array_min array_position array_prepend array_remove
array_repeat array_size array_sort array_union arrays_overlap arrays_zip cardinality element_at
exists explode explode_outer filter flatten forall get inline inline_outer map map_concat
map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
map_zip_with named_struct posexplode posexplode_outer reduce reverse sequence shuffle size slice
sort_array stack str_to_map struct transform transform_keys transform_values try_element_at zip_with
"""
_JSON = """
from_json get_json_object is_variant_null json_array_length json_object_keys json_tuple parse_json
schema_of_json schema_of_variant to_json to_variant_object try_parse_json try_variant_get
variant_get
"""
_CONDITIONS = """
bigint binary boolean coalesce decimal double equal_null float if ifnull ilike int isnotnull isnull
like nullif nullifzero nvl nvl2 smallint tinyint typeof zeroifnull
"""

_ALL = (_AGGREGATES, _WINDOWS, _NUMBERS, _TEXTS, _TIMES, _COLLECTIONS, _JSON, _CONDITIONS)

FUNCTIONS = frozenset(name for names in _ALL for name in names.split())
