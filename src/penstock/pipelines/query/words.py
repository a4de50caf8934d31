"""The syntax and functions that a query may use. Everything else is refused.

Syntax is what Spark's parser makes of a text: the classes of its unresolved plan. Functions are
those of Spark that compute a value from values. Not here is whatever reaches out of the query:
commands, Java methods, files, settings, the session and its user, the network, other programs.
"""

__all__ = ["FUNCTIONS", "LEAVES", "NODES", "REACHING", "TABLE_FUNCTIONS", "VALUES"]

_CATALYST = "org.apache.spark.sql.catalyst."

_CLAUSES = """
analysis.RelationTimeTravel analysis.UnresolvedHaving analysis.UnresolvedInlineTable
analysis.UnresolvedQualify analysis.UnresolvedRelation analysis.UnresolvedSubqueryColumnAliases
analysis.UnresolvedTVFAliases analysis.UnresolvedTableValuedFunction plans.logical.Aggregate
plans.logical.Distinct plans.logical.Except plans.logical.Filter plans.logical.Generate
plans.logical.GlobalLimit plans.logical.Intersect plans.logical.Join plans.logical.LateralJoin
plans.logical.LocalLimit plans.logical.Offset plans.logical.Project plans.logical.Sort
plans.logical.SubqueryAlias plans.logical.Union plans.logical.UnresolvedWith
plans.logical.WithWindowDefinition
"""
_NAMES = """
analysis.MultiAlias analysis.UnresolvedAlias analysis.UnresolvedAttribute
analysis.UnresolvedExtractValue analysis.UnresolvedOrdinal analysis.UnresolvedStar
analysis.UnresolvedStarExceptOrReplace expressions.Alias expressions.SemiStructuredExtract
expressions.UnresolvedNamedLambdaVariable
"""
_CONDITIONS_AND_ARITHMETIC = """
expressions.Add expressions.And expressions.BitwiseAnd expressions.BitwiseNot expressions.BitwiseOr
expressions.BitwiseXor expressions.CaseWhen expressions.Cast expressions.Collate expressions.Concat
expressions.Divide expressions.EqualNullSafe expressions.EqualTo expressions.GreaterThan
expressions.GreaterThanOrEqual expressions.ILike expressions.In expressions.IntegralDivide
expressions.IsNotNull expressions.IsNotUnknown expressions.IsNull expressions.IsUnknown
expressions.LessThan expressions.LessThanOrEqual expressions.Like expressions.LikeAll
expressions.LikeAny expressions.Multiply expressions.Not expressions.NotLikeAll
expressions.NotLikeAny expressions.Or expressions.RLike expressions.Remainder expressions.ShiftLeft
expressions.ShiftRight expressions.ShiftRightUnsigned expressions.Subtract expressions.UnaryMinus
expressions.UnaryPositive expressions.UnresolvedCollation
"""
_CALLS = """
analysis.UnresolvedFunction analysis.UnresolvedGenerator expressions.CreateNamedStruct
expressions.Cube expressions.Exists expressions.GroupingSets expressions.InSubquery
expressions.LambdaFunction expressions.LateralSubquery expressions.ListQuery
expressions.NamedArgumentExpression expressions.Overlay expressions.Rollup
expressions.ScalarSubquery expressions.SortOrder expressions.SpecifiedWindowFrame
expressions.StringLocate expressions.StringTrim expressions.StringTrimLeft
expressions.StringTrimRight expressions.Substring expressions.TimestampAdd expressions.TimestampDiff
expressions.UnresolvedWindowExpression expressions.WindowExpression expressions.WindowSpecDefinition
expressions.WindowSpecReference expressions.aggregate.AggregateExpression
expressions.aggregate.AnyValue expressions.aggregate.First expressions.aggregate.Last
"""

NODES = frozenset(
    f"{_CATALYST}{each}"
    for each in (_CLAUSES + _NAMES + _CONDITIONS_AND_ARITHMETIC + _CALLS).split()
)
"""The parts of a plan that may have others inside."""

_VALUES = """
AliasIdentifier FunctionIdentifier expressions.NumericEvalContext plans.NaturalJoin plans.UsingJoin
plans.logical.JoinHint
"""

VALUES = frozenset(f"{_CATALYST}{each}" for each in _VALUES.split()) | {
    "scala.None$",
    "scala.Some",
    "scala.Tuple2",
    "scala.Tuple3",
}
"""What nodes hold that are not nodes, and may have some inside."""

_LEAVES = """
expressions.Ascending$ expressions.CurrentRow$ expressions.Descending$ expressions.ExprId
expressions.Literal expressions.NullsFirst$ expressions.NullsLast$ expressions.RangeFrame$
expressions.RowFrame$ expressions.UnboundedFollowing$ expressions.UnboundedPreceding$
expressions.UnspecifiedFrame$ expressions.aggregate.Complete$ plans.Cross$ plans.FullOuter$
plans.Inner$ plans.LeftAnti$ plans.LeftOuter$ plans.LeftSemi$ plans.RightOuter$
plans.logical.LimitAll plans.logical.LocalRelation plans.logical.OneRowRelation
"""

LEAVES = frozenset(f"{_CATALYST}{each}" for each in _LEAVES.split()) | {
    "org.apache.spark.sql.util.CaseInsensitiveStringMap",
    "org.apache.spark.unsafe.types.UTF8String",
    "scala.Enumeration$Val",
}
"""What has nothing inside that could reach anywhere: literals, rows of literals, keywords."""

_REACHING = """
CallMethodViaReflection CurrentCatalog CurrentDatabase CurrentPath CurrentUser InputFileBlockLength
InputFileBlockStart InputFileName SparkVersion TryReflect
"""

REACHING = frozenset(f"{_CATALYST}expressions.{each}" for each in _REACHING.split())
"""What a name may turn out to be when Spark has looked it up, and may not."""

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
ascii base64 bit_length btrim char char_length character_length chr collate concat concat_ws
contains crc32 decode elt encode endswith find_in_set format_number format_string hash hex initcap
instr is_valid_utf8 lcase left len length levenshtein locate lower lpad ltrim luhn_check
make_valid_utf8 mask md5 octet_length overlay position printf regexp regexp_count regexp_extract
regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace right rlike
rpad rtrim sentences sha sha1 sha2 soundex space split split_part startswith string substr substring
substring_index to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number
ucase unbase64 unhex upper xxhash64
"""
_TIMES = """
add_months convert_timezone curdate current_date current_time current_timestamp date date_add
date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart
day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day
localtimestamp make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz
make_timestamp_ntz make_ym_interval minute month monthname months_between next_day now quarter
second timestamp timestamp_micros timestamp_millis timestamp_seconds to_date to_timestamp
to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_to_date
try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear
year
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
between bigint binary boolean coalesce decimal double equal_null float if ifnull ilike int isnotnull
isnull like nullif nullifzero nvl nvl2 smallint tinyint typeof zeroifnull
"""

_ALL = (_AGGREGATES, _WINDOWS, _NUMBERS, _TEXTS, _TIMES, _COLLECTIONS, _JSON, _CONDITIONS)

FUNCTIONS = frozenset(name for names in _ALL for name in names.split())
