/** Checks that all required inputs, and the structure of sparse outputs, are bound. */
import { failWith, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { runSync } from '../../../ast/work.ts'
import { chainTo, isDense } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { checkLevelProperty } from '../../../storage/assembly/level-property-checks.ts'
import { HOST } from '../../../storage/engines/host/engine.ts'
import type { DenseOnDevice, Tensor } from '../../../storage/tensor.ts'
import { bindPlan, type CallerTensor, callerTensors, isRowMajor, isStructured } from '../bind-plan.ts'
import type { EntryList } from '../sources/entry-list.ts'
import type { Structure } from '../sources/structure-assembly.ts'
import type { Elsewhere } from '../types.ts'

/** Throws SptError `bind/missing-buffer` for inputs without a value, unless there is a seed. */
export function requireInputs(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  seed: number | undefined,
): void {
  if (seed !== undefined) return
  const missing = callerTensors(kernel).filter(
    (t) => t.isInput && !tensors.has(t.name) && !t.buffers.some((b) => tensors.has(b.name)),
  )
  if (missing.length > 0)
    throw new SptError(
      missing.map(({ name, axes, first: { span } }) => ({
        code: 'bind/missing-buffer',
        message: `buffer ${name} of kernel ${kernel.name} is not bound`,
        ...(span ? { span } : {}),
        expected: `a tensor over [${axes.join(', ')}]`,
        hint: `bind ${name}, or give a seed for random values`,
      })),
    )
}

/** Throws SptError `bind/no-structure` if no bound tensor gives the coordinates of a sparse output. They are never guessed or random. */
export function requireStructure(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  sources: readonly EntryList[],
  seed: number | undefined,
): void {
  const { axes } = bindPlan(kernel)
  const all = callerTensors(kernel)
  const isBound = (t: CallerTensor): boolean =>
    tensors.has(t.name) || t.buffers.some((b) => tensors.has(b.name))
  const given = [
    ...sources.map((s) => s.axes),
    ...all.filter((t) => isBound(t) || (t.isInput && seed !== undefined)).map((t) => t.axes),
  ]
  // The positions of a dense axis follow from those of its parent.
  const isGiven = (a: string): boolean => {
    const chain = chainTo(axes, a)
    const above = isDense(axes.get(a)) ? chain.at(-2) : undefined
    return given.some((g) => chain.every((x) => g.includes(x))) || (above !== undefined && isGiven(above))
  }
  for (const t of all) {
    if (isBound(t) || (t.isInput && seed !== undefined)) continue
    const open = t.structured.findLast((a) => !isGiven(a))
    if (open === undefined) continue
    const { span } = t.first
    failWith(
      'bind/no-structure',
      `axis ${open} of ${t.name} has no structure: no bound tensor gives its coordinates`,
      {
        ...(span ? { span } : {}),
        expected: `a tensor over [${chainTo(axes, open).join(', ')}] bound to ${open} or to ${t.name}; the values do not count`,
        hint: `bind ${open} to coordinates, declare ${t.name} over an axis that an input has, or over a dense axis`,
      },
    )
  }
  if (seed === undefined) requireLists(kernel, new Set(given.flat()))
}

/** Checks the axes of lists and patterns that no tensor has. */
function requireLists(kernel: Kernel1, given: ReadonlySet<string>): void {
  const { axes, bare } = bindPlan(kernel)
  const open = bare.find((a) => isStructured(axes, a) && !given.has(a))
  if (open !== undefined)
    failWith('bind/no-structure', `axis ${open} has no structure: no bound tensor gives its coordinates`, {
      expected: `coordinates over [${chainTo(axes, open).join(', ')}], bound to ${open}`,
      hint: `bind ${open} to coordinates (lists may be empty), or give a seed for random coordinates`,
    })
}

// Checks of the properties that formats claim for their axes, on the built structure.

/** Checks all claims, except of axes whose arrays are elsewhere, which were checked there. Throws SptError `format/claim`. */
export function checkClaims(kernel: Kernel1, { levels }: Structure, elsewhere: Elsewhere): void {
  const { axes } = bindPlan(kernel)
  for (const r of kernel.reformats)
    for (const { instance } of r.instance.parts)
      for (const { axis, claim } of instance.claims) {
        const name = instance.names.get(axis) ?? axis
        // A later format may have replaced the axis.
        if (!levels.has(name) || elsewhere.levels.has(name)) continue
        const chain = chainTo(axes, name).map((a) => levels.get(a)!)
        runSync(checkLevelProperty(HOST, chain, claim))
      }
}

// Checks of inputs that are bound to device-resident tensors.

/**
 * Throws SptError `run/resident` if `t` is not a dense, row-major input (or output, in memory of the caller), and `convert/dtype` if the
 * types differ.
 */
export function checkOnDevice(
  kernel: Kernel1,
  name: string,
  { dtype, origin, isCallers }: DenseOnDevice,
  t: CallerTensor | undefined,
): void {
  const role = t?.first.role
  if (!t || (role !== 'in' && !(isCallers && role !== 'local')))
    failWith(
      'run/resident',
      `${name} of kernel ${kernel.name} is ${t ? 'written by it' : 'structure'}, and is bound to ${origin}, which is resident`,
      {
        expected: 'a buffer that the kernel only reads: the memory is that of the kernel that writes it',
        hint: `bind ${name} from the host (await resident.download())`,
      },
    )
  else if (!isRowMajor(t))
    failWith(
      'run/resident',
      `${name} of kernel ${kernel.name} is sparse, in a format, or in another order of its dimensions, and is bound to ${origin}, which is resident row by row`,
      {
        expected: `a schedule that stores ${name} as declared, over dense axes`,
        hint: `bind ${name} from the host (await resident.download())`,
      },
    )
  else if (t.first.dtype !== dtype)
    failWith(
      'convert/dtype',
      `${name} of kernel ${kernel.name} is ${t.first.dtype}, and is bound to ${origin}, which is resident as ${dtype}`,
      { expected: t.first.dtype, hint: 'declare both with the same type' },
    )
}
