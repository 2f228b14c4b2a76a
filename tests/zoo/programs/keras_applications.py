"""Keras 3 applications, narrowed: random weights, small images, odd numbers of classes."""

import keras
from keras import applications

from programs.keras_layers import layer, rows

SHAPE = (33, 33, 3)


def resnet(classes, version=1):
    from keras.src.applications import resnet as source

    def blocks(x):
        block = source.stack_residual_blocks_v1 if version == 1 else source.stack_residual_blocks_v2
        x = block(x, 8, 2, stride1=1, name="conv2")
        return block(x, 12, 2, name="conv3")

    return source.ResNet(blocks, version == 2, True, weights=None, input_shape=SHAPE, classes=classes, name=f"resnet{version}",
                         weights_name="none")


def densenet(classes):
    from keras.src.applications import densenet as source

    return source.DenseNet([1, 2, 1, 1], weights=None, input_shape=SHAPE, classes=classes)


def efficientnet(classes):
    from keras.src.applications import efficientnet as source

    return source.EfficientNet(0.25, 0.15, 33, weights=None, input_shape=SHAPE, classes=classes, name="efficientnet",
                               weights_name="none")


def efficientnet_v2(classes):
    from keras.src.applications import efficientnet_v2 as source

    return source.EfficientNetV2(0.2, 0.1, 33, name="efficientnetv2-b0", weights=None, input_shape=SHAPE, classes=classes,
                                 weights_name="none")


def convnext(classes):
    from keras.src.applications import convnext as source

    return source.ConvNeXt([1, 1, 2, 1], [6, 9, 12, 15], name="convnext", weights=None, input_shape=SHAPE, classes=classes,
                           weights_name="none")


def mobilenet(classes):
    return applications.MobileNet(input_shape=(32, 32, 3), alpha=0.25, weights=None, classes=classes)


def mobilenet_v2(classes):
    return applications.MobileNetV2(input_shape=(32, 32, 3), alpha=0.35, weights=None, classes=classes)


def mobilenet_v3(classes):
    return applications.MobileNetV3Small(input_shape=(32, 32, 3), alpha=0.25, minimalistic=True, weights=None, classes=classes,
                                         include_preprocessing=False)


def unet(classes):
    """Segmentation network with skip connections."""
    inputs = keras.Input((17, 15, 3))
    layers = keras.layers
    wide = layers.Conv2D(6, 3, padding="same", activation="relu")(inputs)
    low = layers.Conv2D(9, 3, padding="same", activation="relu")(layers.MaxPooling2D(2, padding="same")(wide))
    up = layers.Cropping2D(((0, 1), (0, 1)))(layers.Conv2DTranspose(6, 3, strides=2, padding="same")(low))
    outputs = layers.Conv2D(classes, 1, activation="softmax")(layers.Concatenate()([wide, up]))
    return keras.Model(inputs, outputs)


SMALL = {"resnet_v1": resnet, "resnet_v2": lambda classes: resnet(classes, 2), "densenet": densenet, "convnext": convnext,
         "efficientnet": efficientnet, "efficientnet_v2": efficientnet_v2}
ALPHA = {"mobilenet": mobilenet, "mobilenet_v2": mobilenet_v2, "mobilenet_v3": mobilenet_v3}


def register(zoo):
    for i, (name, build) in enumerate(SMALL.items()):
        for batch, classes in [(1, (97, 100, 127)[i % 3]), (2 + i % 2, (10, 17, 7)[i % 3])]:
            zoo.model(f"{name}.b{batch}_c{classes}", layer(lambda build=build, c=classes: build(c), rows(batch, *SHAPE)), batch)
    for name, build in ALPHA.items():
        for batch, classes, kinds in [(1, 1000, ("forward", "gradient")), (3, 1001, ("forward",))]:
            make = layer(lambda build=build, c=classes: build(c), rows(batch, 32, 32, 3))
            zoo.model(f"{name}.b{batch}_c{classes}", make, batch, kinds=kinds)
    for batch, classes in [(1, 7), (2, 10), (3, 31)]:
        zoo.model(f"unet.b{batch}_c{classes}", layer(lambda c=classes: unet(c), rows(batch, 17, 15, 3)), batch)
