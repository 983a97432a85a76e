/**
 * Dependence testing of spatial (S) and reduction (R) iterators: checks of the guarantees of both kinds. S: different
 * iterations write different elements, and no iteration reads elements that another writes, so that they can run in any
 * order or concurrently. R: iterations combine through one reducer, and no partial value is visible.
 */
import type { Diagnostic, Label } from '../../ast/diagnostics/diagnostic.ts'
import { type Axis, isAttached, isGathered, isNonunique, keepsDuplicates } from '../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { groupBy } from '../../ir/memoize.ts'
import { type Access, accessesOf, type OpenIter } from './coordinate-accesses.ts'
import { type Determined, determined, distinctIn } from './coordinate-injectivity.ts'

type Body = Pick<Kernel1, 'axes' | 'buffers' | 'body'>

/** Returns all violations of the iterator kinds of a kernel. */
export function checkKinds(kernel: Body): readonly Diagnostic[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  const distinct = distinctIn(kernel.buffers)
  const all = accessesOf(kernel.body, axes).map((access) => {
    const buffer = buffers.get(access.buffer)
    return { access, buffer, by: determined(access, buffer?.axes ?? [], axes, distinct) }
  })
  const out: Diagnostic[] = []
  const writes = all.filter((x) => x.access.mode !== 'read')
  for (const w of writes) out.push(...checkTarget(w.access, w.by, w.buffer, axes))
  const byBuffer = groupBy(all, (x) => x.access.buffer)
  for (const w of writes)
    for (const x of byBuffer.get(w.access.buffer)!) {
      if (x === w) continue
      if (x.access.mode !== 'read' && x.access.order < w.access.order) continue
      const d = checkPair(w, x.access)
      if (d) out.push(d)
    }
  return out
}

const place = (a: Access): Pick<Diagnostic, 'span'> => (a.span ? { span: a.span } : {})

const labelOf = (o: OpenIter, text: string): Label[] => (o.iter.span ? [{ span: o.iter.span, text }] : [])

function checkTarget(
  w: Access,
  by: Determined,
  buffer: Buffer1 | undefined,
  axes: ReadonlyMap<string, Axis>,
): readonly Diagnostic[] {
  const out: Diagnostic[] = []
  const missing: { readonly o: OpenIter; readonly name: string; readonly axis: Axis }[] = []
  for (const o of w.around) {
    if (o.iter.kind === 'S')
      for (const c of o.coords) {
        if (!by.has(c.name)) missing.push({ o, ...c })
      }
    else if (w.mode === 'assign')
      out.push({
        code: 'check/assign-in-reduction',
        message: `${w.buffer} is assigned under the R iterator ${o.iter.name}, so the last value would win`,
        ...place(w),
        labels: labelOf(o, `${o.iter.name} is R here`),
        hint: `reduce (\`+=\`, \`max=\`, …), make ${o.iter.name} an S iterator that the target is indexed by, or assign in a separate iteration`,
      })
  }
  const [first] = missing
  if (!first) return out
  const names = missing.map((m) => m.name).join(', ')
  const used = w.index.some((e) => e.kind === 'var' && e.name === first.name)
  out.push({
    code: 'check/spatial',
    message: `different values of the S iterator${missing.length > 1 ? 's' : ''} ${names} may write the same element of ${w.buffer}`,
    ...place(w),
    labels: missing.flatMap((m) => labelOf(m.o, `${m.o.iter.name} is S here`)),
    expected: `a target that uses ${names} as plain ${missing.length > 1 ? 'indices' : 'index'}, or by a provably injective expression`,
    hint: used
      ? repeats(first.axis, axes, buffer)
      : `reduce over ${names} with ${missing.length > 1 ? 'R iterators' : 'an R iterator'}, or index ${w.buffer} by ${missing.length > 1 ? 'them' : 'it'}`,
  })
  return out
}

function repeats(axis: Axis, axes: ReadonlyMap<string, Axis>, buffer: Buffer1 | undefined): string {
  if (isGathered(axis))
    return `${axis.buffer} may list a coordinate twice: make the iterator R and reduce, or write a buffer over the list's own axis`
  const stored = isAttached(axis) ? axes.get(axis.base) : axis
  const cause =
    stored && isNonunique(stored) && !keepsDuplicates(stored)
      ? 'has a position for each element'
      : 'is nonunique'
  return `${stored?.name} ${cause}, so its coordinates repeat: make the iterator R and reduce${buffer ? `, or declare ${buffer.name} over ${stored?.name}` : ''}`
}

/**
 * Returns the diagnostic for two accesses of one buffer, the first a write, in the same iterations of their common
 * iterators; null if they are legal.
 */
function checkPair(w: { access: Access; by: Determined }, x: Access): Diagnostic | null {
  const { access, by } = w
  for (const [k, o] of access.around.entries()) {
    if (x.around[k]?.iter !== o.iter) return null
    for (const c of o.coords) {
      const dims = by.get(c.name)
      if (dims) {
        const apart = dims.some((d) => !x.index[d] || !sameExpr(access.index[d]!, x.index[d]!))
        const combine = o.iter.kind === 'R' && x.mode === 'reduce' && x.reducer === access.reducer
        if (apart && !combine) return crossed(access, x, o, c.name)
      } else if (o.iter.kind === 'R' && access.mode === 'reduce') {
        if (x.mode === 'read') return partial(access, x, o)
        if (x.mode === 'reduce' && x.reducer !== access.reducer) return mixed(access, x, o)
      }
    }
  }
  return null
}

const other = (a: Access, text: string): Label[] => (a.span ? [{ span: a.span, text }] : [])

const crossed = (w: Access, x: Access, o: OpenIter, name: string): Diagnostic => ({
  code: 'check/carried',
  message: `${w.buffer} is ${x.mode === 'read' ? 'read and written' : 'written twice'} at different coordinates in the same step of ${name}`,
  ...place(x),
  labels: other(w, `written here, at ${name}`),
  expected: `steps of ${o.iter.name} that do not depend on each other`,
  hint: 'split the iteration in two, the second after the first',
})

const partial = (w: Access, x: Access, o: OpenIter): Diagnostic => ({
  code: 'check/partial-read',
  message: `${x.buffer} is read before the reduction over ${o.iter.name} is complete`,
  ...place(x),
  labels: other(w, 'reduced here'),
  hint: `read ${x.buffer} after the iteration over ${o.iter.name}`,
})

const mixed = (w: Access, x: Access, o: OpenIter): Diagnostic => ({
  code: 'check/mixed-reducers',
  message: `${x.buffer} is reduced with ${w.reducer} and with ${x.reducer} over the same iterator ${o.iter.name}`,
  ...place(x),
  labels: other(w, `reduced with ${w.reducer} here`),
  hint: 'the result would depend on the order: use an iteration for each, or one monoid',
})
