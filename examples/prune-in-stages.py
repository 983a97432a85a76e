"""
Prunes a network in stages, and trains it after each with what is pruned held at zero:

    pip install torch safetensors
    python prune-in-stages.py --out stages --pattern tw --granularity 128

Options that are not its own are those of `spt prune`, in each stage; `--limit-at 25 '0.*=0.1'` is `--limit` in that one alone. `network` and `batch` are where yours go. Of a stage at 25 % it writes
stages/trained-25.safetensors, which spt prune reads with the masks of the stage before, and stages/25, which spt prune writes;
stages/pruned.safetensors is what comes out at the end.
"""

import argparse
import shlex
import subprocess
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def network():
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))


def batch():
    """Inputs, and what is to come out of them: here the inputs themselves."""
    x = torch.randn(64, 256)
    return x, x


def save(model, path):
    # Parameters, not the state: those that are shared (tied embeddings) are there once.
    save_file({name: p.detach().contiguous() for name, p in model.named_parameters()}, path)


def prune(model, percent, before, folder, command):
    """Masks of the layers by their names, True where an element is kept, and the folder of the stage."""
    trained, stage = folder / f"trained-{percent}.safetensors", folder / str(percent)
    save(model, trained)
    after = ["--after", str(before)] if before else []
    subprocess.run([*command, str(trained), "--sparsity", str(percent / 100), "--out", str(stage), *after], check=True)
    kept = load_file(stage / "masks.safetensors")
    rest = stage / "rest.safetensors"
    if rest.exists():
        for name, mask in load_file(rest).items():
            kept[name] = kept[name] | mask
    return kept, stage


def hold(model, kept):
    """Sets what is pruned to zero."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name in kept:
                p.mul_(kept[name].to(p))


def train(model, steps, kept):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        x, y = batch()
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # After each step: gradients alone being zero would leave what the optimizer remembers.
        hold(model, kept)


def main():
    # No abbreviations: --limit is an option of spt prune.
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--out", type=Path, default=Path("stages"))
    parser.add_argument("--stages", type=int, nargs="+", default=[25, 50, 75], help="sparsities, in percent")
    parser.add_argument(
        "--limit-at", nargs=2, action="append", default=[], metavar=("STAGE", "GLOB=S"), help="a limit of one stage"
    )
    parser.add_argument("--steps", type=int, default=200, help="of training, before the first stage and after each")
    parser.add_argument("--spt", default="npx spt", help="the command")
    own, options = parser.parse_known_args()
    wrong = [stage for stage, _ in own.limit_at if stage not in map(str, own.stages)]
    if wrong:
        parser.error(f"--limit-at {wrong[0]}: there is no such stage")
    command = [*shlex.split(own.spt), "prune", *(options or ["--pattern", "tw", "--granularity", "128"])]
    own.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    model = network()
    train(model, own.steps, {})
    stage = None
    for percent in own.stages:
        limits = [word for at, limit in own.limit_at if at == str(percent) for word in ("--limit", limit)]
        kept, stage = prune(model, percent, stage, own.out, [*command, *limits])
        hold(model, kept)
        train(model, own.steps, kept)
    save(model, own.out / "pruned.safetensors")


if __name__ == "__main__":
    main()
