#!/usr/bin/python3
"""export.py FOLDER - writes torchvision's networks with random weights as ONNX files, those that FOLDER lacks.

Needs Debian's python3-torch, python3-torchvision and python3-onnx.
"""
import os
import sys
import warnings

import torch
import torchvision

NETS = {"resnet50": 13, "mobilenet_v2": 13, "squeezenet1_1": 13, "vit_b_16": 14}


def spread(module):
    """Statistics as trained nets have them, so that values keep their size from layer to layer."""
    if isinstance(module, torch.nn.BatchNorm2d):
        module.running_mean.uniform_(-0.1, 0.1)
        module.running_var.uniform_(0.8, 1.2)
        module.weight.data.uniform_(0.3, 0.6)
        module.bias.data.uniform_(-0.1, 0.1)


def main():
    folder = sys.argv[1]
    warnings.filterwarnings("ignore")
    for name, opset in NETS.items():
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path):
            continue
        torch.manual_seed(0)
        net = getattr(torchvision.models, name)(weights=None).eval()
        net.apply(spread)
        for layer in net.modules():
            if isinstance(layer, torch.nn.Linear) and not layer.weight.any():
                torch.nn.init.normal_(layer.weight, std=0.02)
        torch.onnx.export(net, torch.zeros(1, 3, 224, 224), path, opset_version=opset, input_names=["x"],
                          output_names=["y"])


main()
