"""Clusters, projections and topics of tables."""

import numpy as np
import pytest
from helpers.mixed_tables import mixed

from mercer import cluster, project, topics
from mercer.data import Table


def blobs(sizes=(50, 40, 30)):
    rng = np.random.default_rng(0)
    place = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(size=(len(place), 2)) + 8.0 * np.column_stack([place % 2, place // 2])
    colour = np.array(["red", "green", "blue"], dtype=object)[place]
    return {"x": x[:, 0], "y": x[:, 1], "colour": colour}, place


def run(model, table):
    space = {"table": Table.of(table)}
    exec(model.python, space)
    return space["model"]


@pytest.mark.parametrize("method", ["kmeans", "spectral", "mixture"])
def test_clusters_are_found_and_described(method):
    table, place = blobs()
    drop = ["colour"] if method == "mixture" else []
    found = cluster(table, method=method, max_clusters=6, drop=drop)
    assert len(found.sizes) == 3
    assert all(len(np.unique(found.labels[place == k])) == 1 for k in range(3))
    assert found.certificate is not None
    assert found.criterion in found.notes
    assert any("colour is" in text or "is high" in text for text in sum(found.profiles, ()))
    assert found.coordinates.shape == (120, 2)
    again = run(found, table)
    labels = again.predict(Table.of(table))
    np.testing.assert_array_equal(labels, found.pipeline.predict(Table.of(table)))


def test_clusters_asked_for_and_refused():
    table, _ = blobs()
    found = cluster(table, clusters=2, kernel="gaussian", drop=["colour"])
    assert len(found.sizes) == 2
    assert found.candidates == ()
    for wrong, message in (
        ({"method": "magic"}, "method='magic'"),
        ({"clusters": 1000}, "clusters=1000"),
        ({"method": "mixture"}, "requires numbers"),
        ({"method": "mixture", "kernel": "gaussian"}, "does not use a kernel"),
    ):
        with pytest.raises(ValueError, match=message):
            cluster(table, **wrong)


def test_projections_are_principal_components():
    table, _ = mixed()
    found = project(table)
    assert found.coordinates.shape == (240, 2)
    assert found.certificate.ok
    assert len(found.loadings) == 2
    rows = found.pipeline[0].transform(Table.of(table))
    centred = rows - rows.mean(axis=0)
    singular = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(found.explained, singular[:2] ** 2 / np.sum(singular**2))
    np.testing.assert_array_equal(
        run(found, table).transform(Table.of(table)), found.pipeline.transform(Table.of(table))
    )
    curved = project(table, kernel="gaussian", components=3)
    assert curved.coordinates.shape == (240, 3)
    assert curved.loadings == ()
    with pytest.raises(ValueError, match="components=0"):
        project(table, components=0)


def texts_of(n=80):
    rng = np.random.default_rng(0)
    kitchen, sky = ["salt", "oil", "pepper", "bread"], ["rain", "wind", "sun", "snow"]
    lists = [kitchen if k % 2 else sky for k in range(n)]
    return ["the " + " ".join(rng.choice(words, 12)) for words in lists]


def test_topics_are_told_apart():
    found = topics(texts_of())
    assert "the" in found.notes[1]
    assert len(found.topics) == len(found.shares) == found.weights.shape[1]
    of_two = topics({"text": texts_of(), "n": range(80)}, "text", topics=2)
    words = sorted(sorted(word for word, _ in topic)[:2] for topic in of_two.topics)
    assert words == [["bread", "oil"], ["rain", "snow"]]
    assert (of_two.weights.argmax(axis=1)[::2] == of_two.weights.argmax(axis=1)[0]).all()
    again = run(of_two, {"text": texts_of(), "n": range(80)})
    np.testing.assert_array_equal(again.transform(texts_of()), of_two.weights)


def test_topics_refuse():
    with pytest.raises(TypeError, match="strings"):
        topics([1, 2])
    with pytest.raises(ValueError, match="no words other than stop words"):
        topics(["a b", "c d"])
    with pytest.raises(ValueError, match="text columns"):
        topics({"x": [1.0, 2.0]})


def test_features_stand_for_the_kernel_where_they_are_asked_for():
    """Groups and coordinates by landmarks say so; a mixture has no kernel to stand for."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 60), rng.normal(9, 1, 40)])
    table = {"x": x, "y": x + rng.normal(size=100)}
    asked = {"kernel": "gaussian", "approximation": "nystrom:20"}
    groups = cluster(table, clusters=2, **asked)
    assert sorted(groups.sizes.tolist()) == [40, 60]
    points = project(table, **asked)
    for model in (groups, points):
        assert "20 features" in model.certificate.statement
    with pytest.raises(ValueError, match="does not use a kernel"):
        cluster(table, method="mixture", approximation="nystrom:20")
