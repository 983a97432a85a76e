/** The code that a format replaces in a kernel: axes, the buffers over them, and their replacements in each part. */
import { failAs } from '../../../ast/diagnostics/diagnostic.ts'
import type { AttachedAxis, Axis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import { attachedAxis, isAttached, isDense, isStored, parentOf } from '../../../ir/coordinates/axis.ts'
import { partName } from '../../../ir/coordinates/derived-names.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { iterationsOf } from '../../../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import type { AnyFormat, Instance } from '../../../ir/formats/format.ts'

/** The position of an element in the lists, and the condition `held` that the element exists. */
export interface Position {
  readonly held: Expr
  /** The index for each axis of the part. */
  readonly index: readonly Expr[]
}

/** The axes of a kernel that a format replaces by parts. */
export interface Split {
  readonly over: readonly StoredAxis[]
  /** Old axes that leave the kernel. A dense root stays, because other axes or buffers may use it. */
  readonly leaving: ReadonlySet<string>
  readonly instance: Instance
  /** The split buffers, by their original names. */
  readonly buffers: ReadonlyMap<string, SplitBuffer>
  /** Old and new axes, by name. */
  readonly axes: ReadonlyMap<string, Axis>
  /** Attached axes that replace leaving axes. */
  readonly views: Views
  /** Returns the position of the element at coordinates of the replaced axes; only if the kernel builds the format. */
  readonly position?: ((coordinates: readonly Expr[]) => Position) | undefined
}

export interface SplitBuffer {
  readonly buffer: Buffer1
  readonly parts: readonly string[]
  /** Index of the first replaced dimension. */
  readonly start: number
  /** The value of elements without a position, if it differs from the fill value. */
  readonly absent?: Expr | undefined
  /** True if the original tensor stays, for accesses at coordinates other than the iterators' own. */
  readonly stays?: true | undefined
}

export const leavingOf = (over: readonly StoredAxis[]): ReadonlySet<string> =>
  new Set(over.filter((a) => !isDense(a) || over.every((x) => isDense(x))).map((a) => a.name))

/**
 * Returns the buffer's axes that the format replaces: the chain of its structured axis, or its last axes. A format of
 * any order replaces the whole chain, or all axes of a dense buffer. Throws `schedule/format-rank`.
 */
export function chosenAxes(b: Buffer1, axes: ReadonlyMap<string, Axis>, format: AnyFormat): StoredAxis[] {
  const stored = b.axes.map((a) => axes.get(a) as StoredAxis)
  const leaf = stored.findLastIndex((a) => !isDense(a))
  const n = format.kind === 'family' ? chainLength(stored, leaf) : format.over.length
  const end = leaf >= 0 && leaf + 1 >= n ? leaf + 1 : stored.length
  if (end < n)
    failAs('schedule/format-rank', {
      message: `format ${format.name} replaces ${n} axes; ${b.name} is over [${b.axes.join(', ')}]`,
      expected: `a buffer with at least ${n} axes`,
      hint: 'choose a format with that number of dimensions',
    })
  const over = stored.slice(end - n, end)
  const names = new Set(over.map((a) => a.name))
  for (const a of over) {
    const p = parentOf(a)
    if (p !== null && !names.has(p))
      failAs('schedule/format-rank', {
        message: `format ${format.name} would replace ${a.name} but not the parent ${p}`,
        expected: 'a format over the whole chain of axes',
        hint: `choose a format over ${p} and ${a.name}`,
      })
  }
  return over
}

/** The number of axes from the root to the axis `leaf`; of all axes if `leaf` is -1 (all are dense). */
function chainLength(stored: readonly StoredAxis[], leaf: number): number {
  let root = leaf
  for (let k = leaf; k >= 0; k = stored.findIndex((a) => a.name === parentOf(stored[k]!))) root = k
  return leaf < 0 ? stored.length : leaf - root + 1
}

/** Checks the axes that stay. @throws SptError `schedule/format-children` if one depends on a leaving axis */
export function checkChildren(kernel: Kernel1, leaving: ReadonlySet<string>, text: string): void {
  for (const a of kernel.axes) {
    // Attached axes are replaced by others.
    if (isAttached(a)) continue
    const uses = isStored(a)
      ? leaving.has(parentOf(a) ?? '') && !leaving.has(a.name)
        ? parentOf(a)
        : null
      : ('members' in a ? a.members : [a.base]).find((x) => leaving.has(x))
    if (uses)
      failAs('schedule/format-children', {
        message: `axis ${a.name} ${isStored(a) ? 'is stored under' : `is ${a.kind}:`} ${uses}, which ${text} replaces`,
        ...(isStored(a)
          ? {
              expected: 'a format over the whole chain of axes',
              hint: `choose a format that is also over ${a.name}`,
            }
          : {
              expected: `an axis that no ${a.kind} one is made of`,
              hint: `keep the declared axes of a tensor that is iterated through ${a.name}; if a step created it, move the format before that step`,
            }),
      })
  }
}

/**
 * Returns the buffers over leaving axes, each with its name in every part; `unused` returns an unused name. @throws
 * SptError `schedule/format-shared` if a buffer has some of the axes only, or has the axes in another order
 */
export function splitBuffers(
  kernel: Kernel1,
  over: readonly StoredAxis[],
  leaving: ReadonlySet<string>,
  instance: Instance,
  unused: (name: string) => string,
): Map<string, SplitBuffer> {
  const names = over.map((a) => a.name)
  const out = new Map<string, SplitBuffer>()
  for (const b of kernel.buffers) {
    if (!b.axes.some((a) => leaving.has(a))) continue
    const start = b.axes.indexOf(names[0]!)
    if (start < 0 || names.some((n, k) => b.axes[start + k] !== n))
      failAs('schedule/format-shared', {
        message: `${b.name} has common axes with the reformatted tensor, but is over [${b.axes.join(', ')}]`,
        expected: `[…, ${names.join(', ')}, …]`,
        hint: `declare ${b.name} over the same axes in the same order`,
      })
    const parts = instance.parts.map((p) => (p.label === '' ? b.name : unused(partName(b.name, p.label))))
    out.set(b.name, { buffer: b, parts, start })
  }
  return out
}

/** Returns the buffer of each part, with the part's axes in place of the old ones. */
export const partBuffers = (s: SplitBuffer, over: number, instance: Instance): Buffer1[] =>
  instance.parts.map((p, k) => ({
    ...s.buffer,
    name: s.parts[k]!,
    axes: [...s.buffer.axes.slice(0, s.start), ...p.instance.order, ...s.buffer.axes.slice(s.start + over)],
  }))

// Attached axes under a format. `attached(v, j)` enters the rows of one tensor at the coordinates of another
// axis. A format of either tensor replaces the attached axis by one for each part (`attached-rows.ts`).

/** Returns `leaving`, and the axes attached to these axes, directly or through other axes. */
export function withAttached(axes: readonly Axis[], leaving: ReadonlySet<string>): ReadonlySet<string> {
  const out = new Set(leaving)
  for (const a of axes) if (isAttached(a) && (out.has(a.base) || out.has(a.parent))) out.add(a.name)
  return out
}

/** The attached axes that a format adds. */
export class Views {
  readonly #made = new Map<string, AttachedAxis>()

  constructor(private readonly unused: (name: string) => string) {}

  of(base: string, parent: string): string {
    const key = `${base} ${parent}`
    const found = this.#made.get(key) ?? attachedAxis(this.unused(`${base}_at_${parent}`), base, parent)
    this.#made.set(key, found)
    return found.name
  }

  /** Returns the added axes that statements of `body` iterate, and the added axes that are their parents. */
  in(body: readonly Stmt1[]): readonly AttachedAxis[] {
    const used = new Set(iterationsOf(body).flatMap((it) => it.iters.map((x) => x.axis)))
    const all = [...this.#made.values()]
    for (const a of all.toReversed()) if (used.has(a.name)) used.add(a.parent)
    return all.filter((a) => used.has(a.name))
  }
}
