/** Resolution of names and accesses in a kernel's body. */
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import { valueMeant } from '../../ast/diagnostics/foreign-names.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { type Axis, isFused } from '../../ir/coordinates/axis.ts'
import { cast, type Expr, type Load, load, variable } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { isFloat, isWord } from '../../ir/values/dtype.ts'
import { report, reportAll } from '../diagnostics.ts'
import { FUNCTIONS, type Names, settled } from '../expressions/expressions.ts'
import { asIndex, plain, type Typed } from '../expressions/type-conversion.ts'
import { type Declared, extentOf, type Scope, tooLong } from './kernel-names.ts'

const VALUES = 'a size, a scalar, an iterator or a `let`'

/** The names of values: sizes and coordinates are converted to i32, so arithmetic on them wraps. */
export const bodyNames = (d: Declared, scope: Scope): Names => ({
  ...namesIn(d, scope, 'i32'),
  sizes: (name) => d.params.get(name)?.kind === 'size',
})

function namesIn(d: Declared, scope: Scope, integers: 'i32' | 'index'): Names {
  const names: Names = {
    name: (e) => {
      const t = nameOf(d, scope, e)
      return t && t.expr.dtype === 'index' ? plain(cast(t.expr, integers, e.span)) : t
    },
    access: (e) => {
      const l = accessOf(d, scope, e)
      return l && plain(l)
    },
    field: (e) => {
      const buffer = d.buffers.get(e.object.name)
      return report('check/field', e.span, {
        message: `${e.object.name}.${e.field.name}: components exist only in monoids`,
        expected: buffer ? `an element: ${buffer.name}[${buffer.axes.join(', ')}]` : VALUES,
      })
    },
  }
  return names
}

function nameOf(d: Declared, scope: Scope, e: Ast.Name): Typed | null {
  const seen = scope.find(e.name)
  if (seen) return plain(variable(e.name, seen.dtype, e.span))
  const param = d.params.get(e.name)
  if (param) return plain(variable(e.name, param.kind === 'size' ? 'index' : param.dtype, e.span))
  if (d.broken.has(e.name)) return null
  const buffer = d.buffers.get(e.name)
  if (buffer)
    return report('check/buffer-without-index', e.span, {
      message: `${e.name} is a buffer and needs indices`,
      hint: `${e.name}[${buffer.axes.join(', ')}]`,
    })
  const axis = d.axes.get(e.name)
  if (isFused(axis))
    return report('check/fused-name', e.span, {
      message: `${e.name} is fused and has no coordinate`,
      hint: `use the coordinates of the members: ${axis.members.join(', ')}`,
    })
  if (axis)
    return report('check/not-iterated', e.span, {
      message: `axis ${e.name} is not iterated here and has no coordinate`,
      ...(axis.span && { labels: [{ span: axis.span, text: 'declared here' }] }),
      hint: `make ${e.name} an iterator of this or of an enclosing iteration`,
    })
  const hint = valueMeant(e.name)
  return report('check/unknown-name', e.span, {
    message: `there is no ${e.name} here`,
    expected: VALUES,
    lookup: {
      name: e.name,
      candidates: [...scope.names, ...d.params.keys(), ...d.buffers.keys(), ...FUNCTIONS],
    },
    ...(hint && { hint }),
  })
}

/** The maximum number of dimensions for which swapped indices are detected. */
const MOST_SWAPPED = 4

/** The access `B[e, …]`, as a value or as a target. */
export function accessOf(d: Declared, scope: Scope, e: Ast.Access): Load | null {
  const buffer = d.buffers.get(e.buffer.name)
  const names = namesIn(d, scope, 'index')
  const index = e.index.map((x) => {
    const value = settled(x, names)
    return value && integer(value, x)
  })
  if (!buffer) {
    if (d.broken.has(e.buffer.name)) return null
    const place = scope.find(e.buffer.name) ?? d.places.get(e.buffer.name)
    return report('check/unknown-buffer', e.buffer.span, {
      message: place ? `${e.buffer.name} is not a buffer` : `there is no buffer ${e.buffer.name}`,
      lookup: { name: e.buffer.name, candidates: [...d.buffers.keys()] },
      ...(place && { labels: [{ span: place.span, text: 'declared here' }] }),
    })
  }
  if (index.length !== buffer.axes.length)
    return report('check/index-count', e.span, {
      message: `${buffer.name} has ${quantity(buffer.axes.length, 'dimension')}, and ${index.length} ${index.length === 1 ? 'index is' : 'indices are'} given`,
      ...(buffer.span && { labels: [{ span: buffer.span, text: 'declared here' }] }),
      expected: `${buffer.name}[${buffer.axes.join(', ')}]`,
    })
  if (index.some((x) => x === null)) return null
  const differs = (x: Ast.Expr, dimension: string): boolean => differing(d, scope, x, dimension) !== null
  const wrong = e.index.findIndex((x, k) => differs(x, buffer.axes[k]!))
  const isSwapped = wrong >= 0 && e.index.every((x) => x.kind === 'name')
  const order = isSwapped ? fittingOrder(e.index, buffer.axes, (x, a) => !differs(x, a)) : undefined
  if (order)
    return reportAll({
      ...shapeProblem(d, scope, e.index[wrong]!, buffer.axes[wrong]!)!,
      hint: `${buffer.name} is declared [${buffer.axes.join(', ')}]: did you mean ${buffer.name}[${order.map((x) => (x as Ast.Name).name).join(', ')}]?`,
    })
  for (const [k, x] of e.index.entries()) {
    const problem = shapeProblem(d, scope, x, buffer.axes[k]!)
    if (problem) reportAll(problem)
  }
  return load(buffer.name, index as Expr[], buffer.dtype, e.span)
}

function integer(value: Expr, e: Ast.Expr): Expr | null {
  if (isWord(value.dtype)) return asIndex(value)
  if (isFloat(value.dtype) || value.dtype === 'bool')
    return report('check/index-type', e.span, {
      message: `an index is an integer, and this is ${value.dtype}`,
      hint: 'convert the index: i32(…)',
    })
  return cast(value, 'index')
}

function fittingOrder(
  index: readonly Ast.Expr[],
  axes: readonly string[],
  fits: (x: Ast.Expr, axis: string) => boolean,
): readonly Ast.Expr[] | undefined {
  const [axis, ...others] = axes
  if (axis === undefined) return []
  if (axes.length > MOST_SWAPPED) return undefined
  for (const x of index) {
    if (!fits(x, axis)) continue
    const rest = fittingOrder(
      index.filter((y) => y !== x),
      others,
      fits,
    )
    if (rest) return [x, ...rest]
  }
  return undefined
}

/**
 * A bare iterator with its axis and the axis of the dimension, if the iterator's range is provably different from the
 * dimension; null otherwise.
 */
function differing(d: Declared, scope: Scope, e: Ast.Expr, dimension: string) {
  const seen = e.kind === 'name' ? scope.find(e.name) : undefined
  const axis = d.axes.get(dimension)
  if (!seen?.axis || !axis || seen.axis.name === dimension) return null
  const range = extentOf(d, seen.axis)
  const extent = extentOf(d, axis)
  return range && extent && tooLong(range, extent) ? { iterator: seen.name, from: seen.axis, axis } : null
}

/** Iterators in scope over an axis with the extent of `axis`. */
function iteratorsOver(d: Declared, scope: Scope, axis: Axis): readonly string[] {
  const extent = extentOf(d, axis)
  return scope.iterators.flatMap((s) => {
    const range = s.axis ? extentOf(d, s.axis) : null
    return range && extent && sameExpr(range, extent) ? [s.name] : []
  })
}

function shapeProblem(d: Declared, scope: Scope, e: Ast.Expr, dimension: string): Diagnostic | null {
  const found = differing(d, scope, e, dimension)
  if (!found) return null
  const { iterator, from, axis } = found
  const fitting = iteratorsOver(d, scope, axis)
  return {
    code: 'check/shape',
    message: `${iterator} does not range over the coordinates of axis ${dimension}`,
    span: e.span,
    labels: [
      ...(from.span ? [{ span: from.span, text: `${iterator} comes from here` }] : []),
      ...(axis.span ? [{ span: axis.span, text: `${dimension} has another extent` }] : []),
    ],
    hint: [
      ...(fitting.length > 0 ? [`did you mean ${fitting.join(' or ')}?`] : []),
      'give both axes the same size, or an extent that covers both, such as max(m, n)',
    ].join(' Otherwise, '),
  }
}
