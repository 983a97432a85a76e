/**
 * The name space of one kernel: parameters, axes and buffers, and the first declaration of each name. Statements can
 * also use the iterators and `let`s around them (their scope).
 */
import { linear, minus } from '../../analysis/integers/linear.ts'
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import { isAttached, isDense, isFused, isStored, ownedNames } from '../../ir/coordinates/axis.ts'
import type { Buffer1, Param } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import type { ExprType } from '../../ir/values/dtype.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import { report } from '../diagnostics.ts'

export interface Declared {
  readonly params: Map<string, Param>
  readonly axes: Map<string, Axis>
  readonly buffers: Map<string, Buffer1>
  /** Names whose declarations have errors: errors about their uses are not reported. */
  readonly broken: Set<string>
  /** The first declaration of each name. */
  readonly places: Map<string, { readonly what: string; readonly span: Span }>
  /** The monoid of this name in the kernel's file. */
  readonly monoid: (name: Ast.Ident) => Monoid | null
}

export const nothingDeclared = (monoid: Declared['monoid'] = () => null): Declared => ({
  params: new Map(),
  axes: new Map(),
  buffers: new Map(),
  broken: new Set(),
  places: new Map(),
  monoid,
})

/** Reports a name where an axis is required; for a size, the hint is an axis with this extent. */
export function unknownAxis(d: Declared, { name, span }: Ast.Ident): null {
  if (d.params.get(name)?.kind !== 'size')
    return report('check/unknown-axis', span, {
      message: `there is no axis ${name}`,
      lookup: { name, candidates: [...d.axes.keys()] },
    })
  const over = [...d.axes.values()].find(
    (a) => isDense(a) && a.parent === null && a.extent.kind === 'var' && a.extent.name === name,
  )
  return report('check/unknown-axis', span, {
    message: `${name} is a size, not an axis`,
    expected: 'the name of an axis',
    hint: over
      ? `write ${over.name}, which has ${name} positions`
      : `declare \`axis NAME = dense_fixed(${name})\`, and write NAME`,
  })
}

/** Reports a name where a buffer is required. */
export const unknownBuffer = ({ name, span }: Ast.Ident, buffers: ReadonlyMap<string, unknown>): null =>
  report('check/unknown-buffer', span, {
    message: `there is no buffer ${name}`,
    lookup: { name, candidates: [...buffers.keys()] },
  })

/** Reports a write to an input that is declared at `place`. */
export const inputWritten = ({ name, span }: Ast.Ident, place: Span | undefined): null =>
  report('check/input-written', span, {
    message: `${name} is an input and cannot be written`,
    ...(place && { labels: [{ span: place, text: 'declared here' }] }),
    hint: `give ${name} the role \`inout\`, or write another buffer`,
  })

/** Declares a name. Returns false, and reports an error, if it is declared already. */
export function declare(d: Declared, name: Ast.Ident, what: string): boolean {
  const before = d.places.get(name.name)
  if (!before) {
    d.places.set(name.name, { what, span: name.span })
    return true
  }
  report('check/duplicate', name.span, {
    message: `${name.name} is declared twice`,
    labels: [{ span: before.span, text: `the ${before.what} ${name.name} is declared here` }],
    hint: 'declarations of a kernel or format share a name space',
  })
  return false
}

/**
 * Reports names that are derived from the name of an axis: under such names, the axis's arrays and count are bound,
 * cached and passed to kernels.
 */
export function checkOwnedNames(d: Declared): void {
  for (const a of d.axes.values())
    for (const name of isStored(a) && !isDense(a) ? ownedNames(a.name) : []) {
      const other = d.places.get(name)
      if (!other) continue
      const own = d.places.get(a.name)
      report('check/duplicate', other.span, {
        message: `${name} is the name of the storage of axis ${a.name}`,
        labels: own ? [{ span: own.span, text: `the ${own.what} ${a.name} is declared here` }] : [],
        hint: `rename the ${other.what} or the axis`,
      })
    }
}

export function storedAxis(d: Declared, name: string): StoredAxis | null {
  const a = d.axes.get(name)
  return a && isStored(a) ? a : null
}

/** The axis whose coordinates an axis visits: itself, or the base of a view; null for a fused axis. */
function coordinateAxis(d: Declared, a: Axis): StoredAxis | null {
  if (isStored(a)) return a
  return isFused(a) ? null : storedAxis(d, a.base)
}

/** The extent of the coordinates of an axis; null for a fused axis. */
export function extentOf(d: Declared, a: Axis): Expr | null {
  return coordinateAxis(d, a)?.extent ?? null
}

// Extents that are provably different, which make an index an error.

/** True if the extents are two different sizes, or the range is longer by a constant. */
export function tooLong(range: Expr, dimension: Expr): boolean {
  if (sameExpr(range, dimension)) return false
  if (range.kind === 'var' && dimension.kind === 'var') return true
  const { terms, constant } = minus(linear(range), linear(dimension))
  return terms.size === 0 && constant > 0
}

// Names that a statement can use in addition to the kernel's declarations: iterators and `let`s around it.

export interface Seen {
  readonly what: 'iterator' | 'let'
  readonly name: string
  readonly span: Span
  readonly dtype: ExprType
  /** The declared axis of an iterator, or of a member of a fused iterator; null for a `let`. */
  readonly axis: Axis | null
  /**
   * The depth of operations in the value of a `let`, including the `let`s that the value mentions; for a `let` only.
   */
  readonly levels?: number | undefined
}

/**
 * The names of a block, which are unique, and the names around the block. A block may have very many names, so they are
 * not copied.
 */
export class Scope {
  readonly #names = new Map<string, Seen>()
  readonly #iterators: Seen[] = []

  constructor(private readonly outer: Scope | null = null) {}

  add(seen: Seen): void {
    this.#names.set(seen.name, seen)
    if (seen.what === 'iterator') this.#iterators.push(seen)
  }

  find(name: string): Seen | undefined {
    return this.#names.get(name) ?? this.outer?.find(name)
  }

  /** All names in scope, outermost first. */
  get names(): readonly string[] {
    return [...(this.outer?.names ?? []), ...this.#names.keys()]
  }

  /** All iterators in scope, outermost first. */
  get iterators(): readonly Seen[] {
    return [...(this.outer?.iterators ?? []), ...this.#iterators]
  }
}

/**
 * The innermost iterator over a stored axis, or over an attached view of it; undefined if there is no such iterator.
 */
export function standsOn({ iterators }: Scope, axis: string): Seen | undefined {
  return iterators.findLast(
    (s) => s.axis !== null && (s.axis.name === axis || (isAttached(s.axis) && s.axis.base === axis)),
  )
}
