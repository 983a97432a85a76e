/**
 * `A as bsr(16)`: stores the tensors that share A's structure in another format (SparseTIR's decompose_format,
 * section 3.2.2, for one part). The old axes leave the kernel; every iteration over them runs over the new axes,
 * with the old coordinates computed by the format's inverse map; every access goes through its map.
 */
import { fail } from '../../ast/diagnostic.ts'
import { instantiateFormat } from '../../formats/instantiate.ts'
import { type Axis, isStored, parentOf, type StoredAxis } from '../../ir/axis.ts'
import { int } from '../../ir/expr.ts'
import type { Format } from '../../ir/format.ts'
import type { Buffer1, Kernel1, Reformat, Stmt1 } from '../../ir/stage1.ts'
import { type FormatRewrite, rewriteBody } from './format-rewrite.ts'
import { checkPadding } from './padding.ts'
import { withRepeats } from './repeats.ts'
import type { AsStep, CoordExample } from './steps.ts'

export function applyAs(kernel: Kernel1, step: AsStep): Kernel1 {
  const at = step.span ? { span: step.span } : {}
  const buffer = kernel.buffers.find((b) => b.name === step.buffer)
  if (!buffer) {
    const candidates = kernel.buffers.map((b) => b.name)
    return fail({
      code: 'schedule/unknown-buffer',
      message: `there is no buffer ${step.buffer}`,
      ...at,
      lookup: { name: step.buffer, candidates },
      expected: `one of ${candidates.join(', ')}`,
    })
  }
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const over = chosenAxes(buffer, axes, step.format, at)
  const taken = new Set([
    ...kernel.axes.map((a) => a.name),
    ...kernel.params.map((p) => p.name),
    ...kernel.buffers.map((b) => b.name),
    ...iterNames(kernel.body),
    // Names of earlier formats are still in use: data reach the kernel through them.
    ...kernel.reformats.flatMap((r) => [
      ...r.from.map((a) => a.name),
      ...r.instance.parts.flatMap((p) => p.instance.order),
    ]),
  ])
  const leaving = new Set(over.filter((a) => leaves(a, over)).map((a) => a.name))
  const renamed = new Map<string, string>()
  const rename = (name: string): string => {
    const known = renamed.get(name)
    if (known) return known
    let out = name
    for (let k = 2; taken.has(out); k++) out = `${name}_${k}`
    taken.add(out)
    renamed.set(name, out)
    return out
  }
  const instance = instantiateFormat(
    step.format,
    step.args.map((n) => int(n)),
    over,
    rename,
  )
  for (const a of kernel.axes) {
    const uses = isStored(a)
      ? leaving.has(parentOf(a) ?? '') && !leaving.has(a.name)
        ? parentOf(a)
        : null
      : ('members' in a ? a.members : 'parent' in a ? [a.base, a.parent] : [a.base]).find((x) =>
          leaving.has(x),
        )
    if (uses)
      fail({
        code: 'schedule/format-children',
        message: `axis ${a.name} lies under ${uses}, which ${instance.text} replaces`,
        ...at,
        expected: 'a format over the whole chain of axes',
        hint: `choose a format that is also over ${a.name}`,
      })
  }
  const context: FormatRewrite = { over, leaving, instance, rename: renamed, at }
  const buffers = kernel.buffers.map((b) =>
    b.axes.some((a) => leaving.has(a)) ? replaceAxes(b, context, at) : b,
  )
  const changed = kernel.buffers.filter((b, k) => buffers[k] !== b)
  checkPadding(kernel, { over, changed, instance, leaving }, at)
  const reformat: Reformat = {
    format: instance.text,
    from: over,
    instance: {
      text: instance.text,
      over,
      tree: { kind: 'leaf', part: 0 },
      parts: [{ label: '', instance }],
      given: [],
    },
    buffers: changed.map((b) => ({ name: b.name, axes: b.axes, parts: [b.name] })),
  }
  const touched = new Map(changed.map((b) => [b.name, b]))
  const body = rewriteBody(kernel.body, context, touched)
  const next: Kernel1 = {
    ...kernel,
    params: [
      ...kernel.params,
      ...instance.measured.map((p) => ({
        ...p,
        kind: 'size' as const,
        dtype: 'i32' as const,
        measured: true,
      })),
    ],
    axes: [...kernel.axes.filter((a) => !leaving.has(a.name)), ...instance.axes],
    buffers,
    body,
    reformats: [...kernel.reformats, reformat],
  }
  return withRepeats(next, instance.axes, instance.text, at)
}

const leaves = (a: StoredAxis, over: readonly StoredAxis[]): boolean =>
  a.kind !== 'dense_fixed' || over.every((x) => x.kind === 'dense_fixed')

/** The buffer's axes that the format stands in for: the chain of its structured axis, or its last ones. */
function chosenAxes(b: Buffer1, axes: ReadonlyMap<string, Axis>, format: Format, at: object): StoredAxis[] {
  const stored = b.axes.map((a) => axes.get(a) as StoredAxis)
  const n = format.over.length
  const leaf = stored.findLastIndex((a) => a.kind !== 'dense_fixed')
  const end = leaf >= 0 && leaf + 1 >= n ? leaf + 1 : stored.length
  if (end < n)
    fail({
      code: 'schedule/format-rank',
      message: `format ${format.name} replaces ${n} axes; ${b.name} is over [${b.axes.join(', ')}]`,
      ...at,
      expected: `a buffer with at least ${n} axes`,
      hint: 'choose a format over as many dimensions',
    })
  const over = stored.slice(end - n, end)
  const names = new Set(over.map((a) => a.name))
  for (const a of over) {
    const p = parentOf(a)
    if (p !== null && !names.has(p))
      fail({
        code: 'schedule/format-rank',
        message: `format ${format.name} would replace ${a.name} but not its parent ${p}`,
        ...at,
        expected: 'a format over the whole chain of axes',
        hint: `choose a format over ${p} and ${a.name}`,
      })
  }
  return over
}

function replaceAxes(b: Buffer1, c: FormatRewrite, at: object): Buffer1 {
  const names = c.over.map((a) => a.name)
  const start = b.axes.indexOf(names[0]!)
  if (start < 0 || names.some((n, k) => b.axes[start + k] !== n))
    fail({
      code: 'schedule/format-shared',
      message: `${b.name} shares axes with the reformatted tensor, but is over [${b.axes.join(', ')}]`,
      ...at,
      expected: `[…, ${names.join(', ')}, …]`,
      hint: `declare ${b.name} over the same axes in the same order`,
    })
  return {
    ...b,
    axes: [...b.axes.slice(0, start), ...c.instance.order, ...b.axes.slice(start + names.length)],
  }
}

function iterNames(body: readonly Stmt1[]): string[] {
  return body.flatMap((s) =>
    s.kind === 'iterate'
      ? [...s.iters.map((x) => x.name), ...iterNames(s.body)]
      : s.kind === 'if'
        ? [...iterNames(s.then), ...iterNames(s.else)]
        : s.kind === 'let'
          ? [s.name]
          : [],
  )
}

export const example: CoordExample = {
  before: `format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR {
    y[i] += A[i, j] * x[j]
  }
}`,
  steps: 'A as blocks(2)',
  after: `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis jd = dense_fixed(n)
  axis io = dense_fixed(ceildiv(m, 2))
  axis jo = sparse_variable(io, ceildiv(n, 2))
  axis ii = dense_fixed(2)
  axis ji = dense_fixed(2)
  buffer A: f32[io, jo, ii, ji] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [io, jo, ii, ji] as SRSR where (io * 2 + ii < m and jo * 2 + ji < n) {
    y[io * 2 + ii] += A[io, jo, ii, ji] * x[jo * 2 + ji]
  }
}`,
}
