# SPDX-License-Identifier: MIT
"""Writes what PyTorch gives for several losses over one set of parameters, in double precision. Run it in this folder.

gan.safetensors: a discriminator and a generator trained in turns, each with an Adam of its own.
actor_critic.safetensors: a trunk that two losses train in turns, by Adam and by SGD with momentum, with two heads.
Each has `init/..`, the inputs of each round, `losses/OBJECTIVE`, `grad/OBJECTIVE/..` of the first step, and `final/..`.
"""

import torch
import torch.nn.functional as F

from make_fixtures import draw, write_safetensors

ROUNDS, BATCH, NOISE = 8, 16, 3


def layers(generator, sizes):
    params = {}
    for name, (out, inner) in sizes.items():
        params[f"{name}.weight"] = draw(generator, (out, inner), 0.5)
        params[f"{name}.bias"] = draw(generator, (out,), 0.2)
    return params


def linear(p, name, x):
    return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def train(path, params, inputs, objectives):
    """objectives: name -> (loss of parameters and inputs, names of parameters begin so, optimizer, norm to clip to)"""
    tensors = {f"init/{name}": value.clone() for name, value in params.items()}
    tensors.update(inputs)
    for value in params.values():
        value.requires_grad_(True)
    picked = {name: {key: value for key, value in params.items() if key.startswith(begins)}
              for name, (_, begins, _, _) in objectives.items()}
    optimizers = {name: make(list(picked[name].values())) for name, (_, _, make, _) in objectives.items()}
    losses = {name: [] for name in objectives}
    for step in range(ROUNDS):
        for name, (loss_of, _, _, clip) in objectives.items():
            for value in params.values():
                value.grad = None
            loss = loss_of(params, {key: value[step] for key, value in inputs.items()})
            loss.backward()
            if step == 0:
                tensors.update({f"grad/{name}/{key}": value.grad.clone() for key, value in picked[name].items()})
            if clip > 0:
                torch.nn.utils.clip_grad_norm_(list(picked[name].values()), clip)
            optimizers[name].step()
            losses[name].append(loss.item())
    tensors.update({f"final/{name}": value for name, value in params.items()})
    tensors.update({f"losses/{name}": torch.tensor(values, dtype=torch.float64) for name, values in losses.items()})
    write_safetensors(path, tensors)


def gan():
    generator = torch.Generator().manual_seed(11)
    params = layers(generator, {"discriminator.first": (16, 2), "discriminator.second": (1, 16),
                                "generator.first": (16, NOISE), "generator.second": (2, 16)})
    inputs = {"real": draw(generator, (ROUNDS, BATCH, 2), 1.0),
              "z_d": draw(generator, (ROUNDS, BATCH, NOISE), 1.0), "z_g": draw(generator, (ROUNDS, BATCH, NOISE), 1.0)}

    def make(p, z):
        return linear(p, "generator.second", torch.tanh(linear(p, "generator.first", z)))

    def judge(p, x):
        return linear(p, "discriminator.second", F.leaky_relu(linear(p, "discriminator.first", x), 0.2))

    def d_loss(p, batch):
        return F.softplus(-judge(p, batch["real"])).mean() + F.softplus(judge(p, make(p, batch["z_d"]))).mean()

    def g_loss(p, batch):
        return F.softplus(-judge(p, make(p, batch["z_g"]))).mean()

    train("gan.safetensors", params, inputs, {
        "d": (d_loss, "discriminator.", lambda p: torch.optim.Adam(p, lr=2e-2, betas=(0.5, 0.9)), 0),
        "g": (g_loss, "generator.", lambda p: torch.optim.Adam(p, lr=1e-2, betas=(0.5, 0.9)), 0.25)})


def actor_critic():
    generator = torch.Generator().manual_seed(12)
    params = layers(generator, {"trunk": (16, 4), "actor": (3, 16), "critic": (1, 16)})
    inputs = {"state": draw(generator, (ROUNDS, BATCH, 4), 1.0),
              "action": torch.randint(0, 3, (ROUNDS, BATCH), generator=generator),
              "gain": draw(generator, (ROUNDS, BATCH), 1.0)}

    def value_of(p, batch):
        return linear(p, "critic", torch.tanh(linear(p, "trunk", batch["state"]))).squeeze(-1)

    def critic_loss(p, batch):
        return F.mse_loss(value_of(p, batch), batch["gain"])

    def actor_loss(p, batch):
        log_p = F.log_softmax(linear(p, "actor", torch.tanh(linear(p, "trunk", batch["state"]))), -1)
        advantage = batch["gain"] - value_of(p, batch).detach()
        return -(log_p.gather(1, batch["action"][:, None])[:, 0] * advantage).mean()

    train("actor_critic.safetensors", params, inputs, {
        "critic": (critic_loss, ("trunk.", "critic."), lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9), 0),
        "actor": (actor_loss, ("trunk.", "actor."), lambda p: torch.optim.Adam(p, lr=1e-2), 0)})


if __name__ == "__main__":
    gan()
    actor_critic()
