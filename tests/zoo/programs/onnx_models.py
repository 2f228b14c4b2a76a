"""ONNX graphs through jaxonnxruntime, and a runtime on numpy-like calls of JAX for the same graphs."""

import jax
import numpy as np
import onnx
from jaxonnxruntime import backend, config
from onnx import TensorProto, helper, numpy_helper

config.update("jaxort_only_allow_initializers_as_static_args", False)
FLOAT = TensorProto.FLOAT


def graph(nodes, inputs, outputs, weights):
    info = lambda name, shape: helper.make_tensor_value_info(name, FLOAT, shape)
    made = helper.make_graph(nodes, "zoo", [info(n, s) for n, s in inputs.items()], [info(n, None) for n in outputs],
                             [numpy_helper.from_array(value, name) for name, value in weights.items()])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 14)])


def program(build, batch):
    """`make` of a graph: its initializers are parameters."""
    def make(random):
        from jaxonnxruntime import call_onnx
        nodes, shape, weights = build(random, batch)
        model = graph(nodes, {"x": shape}, [nodes[-1].output[0]], weights)
        x = random.normal(*shape)
        function, parameters = call_onnx.call_onnx_model(model, {"x": x})
        return lambda parameters, x: function(parameters, {"x": x}), parameters, [x]
    return make


def mlp(classes):
    def build(random, batch):
        weights = {"w": random.normal(13, 31, scale=0.3), "b": random.normal(31, scale=0.1), "v": random.normal(31, classes, scale=0.3)}
        nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
                 helper.make_node("MatMul", ["r", "v"], ["l"]), helper.make_node("Softmax", ["l"], ["y"], axis=-1)]
        return nodes, [batch, 13], weights
    return build


def cnn(random, batch):
    weights = {"k": random.normal(5, 3, 3, 3, scale=0.3), "s": random.uniform(5, low=0.5, high=1.5), "o": random.normal(5), "m": random.normal(5),
               "v": random.uniform(5, low=0.5, high=1.5)}
    nodes = [helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3], strides=[2, 2]),
             helper.make_node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"]), helper.make_node("LeakyRelu", ["n"], ["r"], alpha=0.1),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), helper.make_node("Flatten", ["p"], ["y"])]
    return nodes, [batch, 3, 9, 11], weights


def elementwise(random, batch):
    nodes, last = [], "x"
    for i, op in enumerate(["Erf", "Exp", "Sqrt", "Tanh", "Softplus", "Log", "Sigmoid", "Neg", "Abs"]):
        nodes.append(helper.make_node(op, [last], [f"t{i}"]))
        last = f"t{i}"
    nodes.append(helper.make_node("ReduceMean", [last], ["y"], axes=[1], keepdims=1))
    return nodes, [batch, 33], {}


def register(zoo):
    for batch, classes in [(1, 10), (1, 100), (2, 97), (3, 1001)]:
        zoo.model(f"mlp.b{batch}_c{classes}", program(mlp(classes), batch), batch)
    for batch in (1, 3):
        zoo.model(f"cnn.b{batch}", program(cnn, batch), batch)
        zoo.model(f"elementwise.b{batch}", program(elementwise, batch), batch)
