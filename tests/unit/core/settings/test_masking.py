import pytest

from penstock.core.settings.masking import names_secret, without_secrets

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvg\nIBADAN\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.container.store",
        "spark.ssl.keyPassword",
        "spark.kafka.clusters.a.sasl.jaas.config",
        "spark.io.encryption.key",
        "spark.cassandra.auth.pwd",
        "spark.executorEnv.DB_PASS",
        "spark.redis.auth",
    ],
)
def test_names_of_secrets_are_known(name):
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.shuffle.partitions",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.sql.keyword.x",
        "spark.authenticate",
    ],
)
def test_other_names_are_shown(name):
    assert not names_secret(name)


@pytest.mark.parametrize(
    "value",
    [
        "jdbc:mysql://me:open@store/db",
        "jdbc:sqlserver://store;user=me;pwd=open",
        "AccountName=me;AccountKey=open==",
        "https://store/container?sv=2026&sig=open",
    ],
)
def test_a_value_that_holds_a_secret_is_one_whatever_its_name(value):
    assert names_secret("spark.hadoop.some.url", value)
    assert "open" not in without_secrets(value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"options: {KEY}, topic", "options: ***, topic"),
        ("-----BEGIN RSA PRIVATE KEY-----\ncut", "***"),
        ('required username="me" password="a\\"b c";', 'required username="me" ***;'),
        ("ssl.key.password=open, a=b", "ssl.key.***, a=b"),
        ("https://me:open@mirror/x", "https://***@mirror/x"),
        ("https://me:op@en@mirror/x", "https://***@mirror/x"),
        ("{'sasl.password': 'open', 'a': 'b'}", "{'sasl.***, 'a': 'b'}"),
        ('{"sasl.password":"open"}', '{"sasl.***}'),
        ("password='open sesame' a", "*** a"),
        ('password="cut off', "***"),
        ("{'sasl.password': 'cut o", "{'sasl.***"),
        ('password="' + "\\n" * 5000 + '"', "***"),
        ("nothing to hide: a=b", "nothing to hide: a=b"),
    ],
)
def test_no_secret_stands_in_a_text(text, shown):
    assert without_secrets(text) == shown
