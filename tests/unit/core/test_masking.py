import pytest

from penstock.core.masking import names_secret, without_secrets

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
    ],
)
def test_names_of_secrets_are_known(name):
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    ["spark.sql.shuffle.partitions", "spark.hadoop.fs.s3a.endpoint", "spark.sql.keyword.x"],
)
def test_other_names_are_shown(name):
    assert not names_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"options: {KEY}, topic", "options: ***, topic"),
        ("-----BEGIN RSA PRIVATE KEY-----\ncut", "***"),
        ('required username="me" password="a\\"b c";', 'required username="me" ***;'),
        ("ssl.key.password=open, a=b", "ssl.key.***, a=b"),
        ("https://me:open@mirror/x", "https://***@mirror/x"),
        ("nothing to hide: a=b", "nothing to hide: a=b"),
    ],
)
def test_no_secret_stands_in_a_text(text, shown):
    assert without_secrets(text) == shown
