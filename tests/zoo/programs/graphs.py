"""Jraph: graph networks on padded batches of graphs of odd sizes."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np


def graph(random, nodes, edges, size=5):
    """Graphs with the given numbers of nodes and edges, as one batch."""
    count = len(nodes)
    senders, receivers, offset = [], [], 0
    for n, e in zip(nodes, edges):
        senders.append(offset + random.integers(n, e))
        receivers.append(offset + random.integers(n, e))
        offset += n
    return jraph.GraphsTuple(
        nodes=random.normal(sum(nodes), size), edges=random.normal(sum(edges), 3), globals=random.normal(count, 2),
        senders=np.concatenate(senders), receivers=np.concatenate(receivers),
        n_node=np.array(nodes, np.int32), n_edge=np.array(edges, np.int32))


def model(build, nodes, edges):
    def make(random):
        p = {"w": random.normal(5, 7, scale=0.4), "q": random.normal(12, 1, scale=0.4), "edge": random.normal(15, 3, scale=0.3),
             "node": random.normal(13, 5, scale=0.3), "global": random.normal(10, 2, scale=0.3), "out": random.normal(7, 10, scale=0.4)}
        return build, p, [graph(random, nodes, edges)]
    return make


def convolution(p, g):
    layer = jraph.GraphConvolution(lambda nodes: jax.nn.relu(nodes @ p["w"]), add_self_edges=True, symmetric_normalization=True)
    return jax.nn.softmax(layer(g).nodes @ p["out"])


def attention(p, g):
    query = lambda nodes: nodes @ p["w"]
    logits = lambda sent, received, edges: jax.nn.leaky_relu(jnp.concatenate([sent[:, :6], received[:, :6]], 1) @ p["q"])
    return jraph.GAT(query, logits, lambda nodes: nodes)(g._replace(edges=None)).nodes


def network(p, g):
    """Full block of updates of edges, nodes and globals."""
    join = lambda *parts: jnp.concatenate(parts, -1)
    block = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, u: jax.nn.gelu(join(e, s, r, u) @ p["edge"]),
        update_node_fn=lambda n, s, r, u: jax.nn.gelu(join(n, s, r, u) @ p["node"]),
        update_global_fn=lambda n, e, u: join(n, e, u) @ p["global"])
    out = block(g)
    return out.nodes, out.edges, out.globals


def interaction(p, g):
    net = jraph.InteractionNetwork(
        update_edge_fn=lambda e, s, r: jnp.tanh(jnp.concatenate([e, s, r, e[:, :2]], -1) @ p["edge"]),
        update_node_fn=lambda n, r: jnp.tanh(jnp.concatenate([n, r, n], -1) @ p["node"]), include_sent_messages_in_node_update=False)
    return net(g).nodes


def segments(p, g):
    ids, count = g.receivers, g.nodes.shape[0]
    soft = jraph.segment_softmax(g.edges[:, 0], ids, count)
    return soft, jraph.segment_mean(g.edges, ids, count), jraph.segment_variance(g.edges, ids, count), jraph.segment_normalize(g.edges, ids, count)


def maxima(p, g):
    return jraph.segment_max_or_constant(g.edges, g.receivers, g.nodes.shape[0])


BUILDS = {"convolution": convolution, "attention": attention, "network": network, "interaction": interaction, "segments": segments,
          "segment_max": maxima}
SIZES = [((7,), (17,)), ((3, 10), (5, 31)), ((1, 17, 5), (1, 97, 7)), ((127,), (100,))]


def register(zoo):
    for name, build in BUILDS.items():
        for nodes, edges in SIZES:
            zoo.model(f"{name}.b{len(nodes)}_n{sum(nodes)}_e{sum(edges)}", model(build, nodes, edges), len(nodes))
