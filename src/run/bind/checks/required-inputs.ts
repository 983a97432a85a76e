/** Checks that all required inputs, and the structure of sparse outputs, are bound. */

import { failWith, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { chainTo, isDense, paddingOf } from '../../../ir/coordinates/axis.ts'
import type { Kernel1, Reformat } from '../../../ir/coordinates/stage1.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { freeVars, mentions, someExpr } from '../../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import { coordinatesAt } from '../../../ir/values/arrays.ts'
import { isFloat } from '../../../ir/values/dtype.ts'
import { evaluate } from '../../../ir/values/evaluate.ts'
import { convertValues, DenseOnDevice, type Tensor } from '../../../storage/tensor.ts'
import { bindPlan, type CallerTensor, callerTensors, isRowMajor, isStructured } from '../bind-plan.ts'
import type { EntryList } from '../sources/entry-list.ts'
import type { Bound } from '../types.ts'

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
        ...(span && { span }),
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
  const { axes, bare, tensors: all } = bindPlan(kernel)
  const isBound = (t: CallerTensor): boolean =>
    (t.isInput && seed !== undefined) || tensors.has(t.name) || t.buffers.some((b) => tensors.has(b.name))
  const given = [...sources, ...all.filter(isBound)].map((t) => t.axes)
  // The positions of a dense axis follow from those of its parent.
  const isGiven = (a: string): boolean => {
    const chain = chainTo(axes, a)
    const above = isDense(axes.get(a)) ? chain.at(-2) : undefined
    return given.some((g) => chain.every((x) => g.includes(x))) || (above !== undefined && isGiven(above))
  }
  for (const t of all) {
    if (isBound(t)) continue
    const open = t.structured.findLast((a) => !isGiven(a))
    if (open === undefined) continue
    const { span } = t.first
    failWith(
      'bind/no-structure',
      `axis ${open} of ${t.name} has no structure: no bound tensor gives its coordinates`,
      {
        ...(span && { span }),
        expected: `a tensor over [${chainTo(axes, open).join(', ')}] bound to ${open} or to ${t.name}; the values do not count`,
        hint: `bind ${open} to coordinates, declare ${t.name} over an axis that an input has, or over a dense axis`,
      },
    )
  }
  // Axes of lists and patterns that no tensor has.
  const open = bare.find((a) => isStructured(axes, a) && !given.some((g) => g.includes(a)))
  if (open !== undefined && seed === undefined)
    failWith('bind/no-structure', `axis ${open} has no structure: no bound tensor gives its coordinates`, {
      expected: `coordinates over [${chainTo(axes, open).join(', ')}], bound to ${open}`,
      hint: `bind ${open} to coordinates (lists may be empty), or give a seed for random coordinates`,
    })
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

// Factors that formats multiply by the fill value (`Reformat.factors`) must be finite, because 0 times NaN is not 0. Factors at padding
// coordinates are checked on binding and writing. Factors in partially filled blocks are checked only if a result is wrong.

type Sizes = ReadonlyMap<string, number>
type Dense = ReadonlyMap<string, Tensor>

/** Throws SptError `bind/padding-factor` if a factor at a padding coordinate is not finite. */
export function checkPaddedFactors(kernel: Kernel1, dense: Dense, sizes: Sizes): void {
  for (const r of kernel.reformats)
    for (const f of r.factors ?? [])
      for (const { tensor, by } of f.loads)
        for (const { instance } of r.instance.parts)
          for (const padded of paddedCoordinates(r, instance, sizes)) {
            const dim = by.indexOf(padded.dimension)
            const t = dense.get(tensor)
            const at = t && dim >= 0 ? notFinite(t, dim, padded.coordinates) : undefined
            if (at === undefined) continue
            failWith(
              'bind/padding-factor',
              `${tensor}[${at.index.join(', ')}] is ${at.value}, and positions of ${instance.text} that hold nothing are padded with its coordinate: 0 times ${f.text} would not be 0 there`,
              {
                expected: `finite values of ${tensor}${padded.coordinates ? ` where ${r.from[padded.dimension]!.name} is ${padded.coordinates.join(', ')}` : ''}`,
                hint: 'choose a format whose padding has no coordinate, or pad with another coordinate',
              },
            )
          }
}

interface Padded {
  readonly dimension: number
  readonly coordinates: readonly number[] | null
}

/** Coordinates at which axes are padded, by old dimension; `null`: any, because a list or table determines them. */
function paddedCoordinates(r: Reformat, part: FormatInstance, sizes: Sizes): readonly Padded[] {
  return part.axes.flatMap((a) => {
    // Padding with the last coordinate of a segment is harmless, because this coordinate is visited anyway.
    const own = paddingOf(a)
    if (!own) return []
    const padding = evaluate(own, sizes)
    return r.from.flatMap((_, dimension): Padded[] => {
      const e = part.inverse[dimension]!
      const names = [...freeVars(e)].filter((v) => part.order.includes(v))
      if (!names.includes(a.name)) return []
      const tables = (name?: string): boolean =>
        someExpr(e, (x) => x.kind === 'load' && (name === undefined || mentions(x, name)))
      if (tables(a.name)) return [{ dimension, coordinates: null }]
      if (tables()) return []
      const coordinates = valuesOf(
        e,
        names.filter((v) => v !== a.name),
        part,
        new Map([...sizes, [a.name, padding]]),
      )
      return coordinates ? [{ dimension, coordinates }] : []
    })
  })
}

/** The values of an expression over all coordinates of dense axes; undefined if an axis is not dense. */
function valuesOf(e: Expr, names: readonly string[], part: FormatInstance, at: Sizes): number[] | undefined {
  const [name, ...rest] = names
  if (name === undefined) return [evaluate(e, at)]
  const axis = part.axes.find((a) => a.name === name)
  if (!isDense(axis)) return undefined
  const out: number[] = []
  for (let c = 0; c < evaluate(axis.extent, at); c++) {
    const own = valuesOf(e, rest, part, new Map([...at, [name, c]]))
    if (!own) return undefined
    out.push(...own)
  }
  return out
}

interface Element {
  readonly index: readonly number[]
  readonly value: number
}

/** The first element that is not finite; with `only`, at these coordinates of dimension `dim`. Undefined if all are finite. */
function notFinite(t: Tensor, dim: number, only: readonly number[] | null): Element | undefined {
  if (t.kind !== 'dense' || t instanceof DenseOnDevice || !isFloat(t.dtype)) return undefined
  const { shape } = t
  const inner = shape.slice(dim + 1).reduce((a, b) => a * b, 1)
  const extent = shape[dim] ?? 1
  const outer = shape.slice(0, dim).reduce((a, b) => a * b, 1)
  const runs = only ?? [0]
  const length = only ? inner : inner * extent
  for (let o = 0; o < outer; o++)
    for (const c of runs) {
      if (c < 0 || c >= extent) continue
      const start = (o * extent + c) * inner
      const values = convertValues(t.values.subarray(start, start + length), t.dtype, 'f64')
      const at = values.findIndex((x: number) => !Number.isFinite(x))
      if (at < 0) continue
      return { index: coordinatesAt(start + at, shape), value: values[at]! }
    }
  return undefined
}

/** Explains which factor of 0 may have made a result non-finite, and a remedy, as text; undefined if all bound factors are finite. */
export function factorsNotFinite({ kernel, dense }: Bound): string | undefined {
  const passed = [
    ...kernel.reformats.map((r) => ({
      by: r.format,
      tensor: r.source ?? 'its tensor',
      factors: r.factors ?? [],
    })),
    ...(kernel.skippedProducts ?? []),
  ]
  for (const { by, tensor, factors } of passed)
    for (const f of factors) {
      const found = f.loads.flatMap(({ tensor }) => {
        const t = dense.get(tensor)
        const at = t && notFinite(t, 0, null)
        return at ? [`${tensor}[${at.index.join(', ')}] is ${at.value}`] : []
      })
      // Intermediate values are not checked.
      if (found.length === 0 && f.element && f.loads.every(({ tensor }) => dense.has(tensor))) continue
      const what = found.length > 0 ? `${found.join(', ')}, and ` : ''
      return `${by} takes 0 times ${f.text}, where ${tensor} holds nothing, for 0: ${what}0 times NaN or infinity is NaN; exclude these terms with an if or a select on ${tensor}`
    }
  return undefined
}
