#!/usr/bin/python3
"""Writes resnet50.onnx: the network with random weights, which takes as long as one with trained weights.

apt-get install --no-install-recommends python3-torch python3-torchvision python3-onnx
usage: export_resnet50.py [FILE.onnx]
"""
import sys

import torch
import torchvision

path = sys.argv[1] if len(sys.argv) > 1 else "resnet50.onnx"
torch.manual_seed(0)
net = torchvision.models.resnet50(weights=None).eval()
torch.onnx.export(net, torch.zeros(1, 3, 224, 224), path, opset_version=13, input_names=["input"], output_names=["scores"])
print("written to", path)
