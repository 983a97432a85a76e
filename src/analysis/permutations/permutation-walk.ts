/**
 * Traversal of statements that joins an iterator with the dimensions that it indexes alone, as permuted identically.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import {
  chainTo,
  isAttached,
  isDenseChain,
  isFused,
  isGathered,
  isNonunique,
  isStored,
  parentOf,
  storesGaps,
} from '../../ir/coordinates/axis.ts'
import type { Buffer1, Iter, Iteration, Kernel1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { someStmt1 } from '../../ir/coordinates/stage1-tree.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { children, isFreeCast, substitute } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { isCompare } from '../../ir/values/math.ts'
import { Alike } from './permutation-classes.ts'

/** A coordinate in scope. */
interface Open {
  readonly name: string
  readonly axis: Axis
  readonly alike: Alike
}

/** The use of a coordinate, and the expression that messages print for it. */
interface Use {
  readonly what: 'condition' | 'value' | 'index'
  readonly shown: Expr | null
  /** The span of the statement, for expressions without a span. */
  readonly span: Span | undefined
  /** Visited nodes: operands are shared, and a node is visited once for each statement. */
  readonly seen: Set<Expr>
}

type Lets = ReadonlyMap<string, Expr>

export function permutationWalk(
  /**
   * @param only an iteration to restrict the traversal to: other code counts only if it decides which of the
   * iteration's steps run; null for the whole kernel
   */ kernel: Kernel1,
  only: Iteration | null,
) {
  const dimsByTensor = new Map<string, readonly Alike[]>()
  const levels = new Map<string, Alike>()
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  /** Returns the dimensions of each tensor that occurs, or whose coordinates an iterator visits. */
  const dimensions = (): ReadonlyMap<string, readonly Alike[]> => {
    for (let known = -1; known !== levels.size; ) {
      known = levels.size
      for (const b of kernel.buffers) if (b.axes.some((a) => levels.has(a))) dimsOf(b)
    }
    return dimsByTensor
  }
  const statements = (
    body: readonly Stmt1[],
    open: readonly Open[] = [],
    around: Lets = new Map(),
    inside = false,
  ): void => {
    let lets = around
    for (const s of body) {
      if (s.kind === 'let') {
        lets = new Map(lets).set(s.name, substitute(s.value, lets))
        continue
      }
      const here = inside || only === null || s === only
      if (!here && !someStmt1([s], (x) => x === only)) continue
      const use = (what: Use['what'], e: Expr, of: readonly Open[]): void =>
        uses(substitute(e, lets), of, { what, shown: null, span: s.span, seen: new Set() })
      if (s.kind === 'iterate') {
        const opened = [...open]
        for (const it of s.iters) openedBy(it, opened)
        for (const w of s.where) use('condition', w, opened)
        statements(s.body, opened, lets, here)
      } else if (s.kind === 'if') {
        use('condition', s.cond, open)
        for (const b of [s.then, s.else]) statements(b, open, lets, here)
      } else if (s.kind !== 'rounds') {
        for (const t of s.targets) use('value', t, open)
        for (const v of s.values) use('value', v, open)
      }
    }
  }
  /** Adds the coordinates of an iterator, joined with the levels of the trees that it visits. */
  const openedBy = (it: Iter, open: Open[]): void => {
    const axis = axes.get(it.axis)!
    for (const name of isFused(axis) ? axis.members : [it.name]) {
      const of = isFused(axis) ? axes.get(name)! : axis
      const alike = new Alike([], [of.name])
      open.push({ name, axis: of, alike })
      if (isGathered(of)) {
        alike.refuse(`${name} runs over the coordinates that ${of.buffer} lists`, it.span)
        dimsOf(buffers.get(of.buffer)!)
      } else climb(open, open.length - 1, storedAt(of), it.span)
    }
  }
  /** Joins a coordinate of a tree, and the coordinates through which it is entered, with the levels of the tree. */
  const climb = (open: readonly Open[], at: number, leaf: StoredAxis, span: Span | undefined): void => {
    const { axis, alike } = open[at]!
    if (isGathered(axis)) return
    const stored = storedAt(axis)
    levelOf(stored.name, leaf.name)?.join(alike, span)
    const above = parentOf(stored)
    if (above === null) return
    const by = isAttached(axis) ? axis.parent : above
    const k = open.findLastIndex(
      (o, n) => n < at && (o.axis.name === by || (isAttached(o.axis) && o.axis.base === by)),
    )
    if (isAttached(axis)) meet(open[k]!, levelOf(above, leaf.name), storedAt(axes.get(above)!), span)
    else climb(open, k, leaf, span)
  }
  const storedAt = (a: Axis): StoredAxis =>
    isStored(a) ? a : storedAt(axes.get((a as { readonly base: string }).base)!)
  /**
   * Returns the class of a level of a tree; undefined for a tree of dense levels only. Dense levels have all
   * coordinates, so each sparse tree below them has a class of its own.
   */
  const levelOf = (axis: string, leaf: string): Alike | undefined => {
    const top = chainTo(axes, leaf).find((a) => !isDenseChain(axes, a))
    if (top === undefined) return undefined
    const key = isDenseChain(axes, axis) ? `${axis} ${top}` : axis
    const known = levels.get(key)
    if (known) return known
    const level = new Alike([])
    levels.set(key, level)
    const a = axes.get(axis)!
    const above = chainTo(axes, axis).slice(0, -1)
    if (storesGaps(a)) level.refuse(`${axis} also stores the coordinates between its elements`, a.span)
    // Elements are distributed over the positions of one coordinate in their order.
    const apart = above.find((x) => isNonunique(axes.get(x)!))
    if (apart !== undefined)
      level.refuse(`${apart} is nonunique, and elements under it are in order of ${axis}`, a.span)
    return level
  }
  const dimsOf = (b: Buffer1): readonly Alike[] => {
    const known = dimsByTensor.get(b.name)
    if (known) return known
    const dims = b.axes.map((axis, dimension) => new Alike([{ tensor: b.name, dimension, axis }]))
    dimsByTensor.set(b.name, dims)
    for (const leaf of b.axes)
      for (const axis of chainTo(axes, leaf)) {
        const level = levelOf(axis, leaf)
        if (level && b.axes.includes(axis)) dims[b.axes.indexOf(axis)]!.join(level, axes.get(axis)!.span)
      }
    return dims
  }
  const uses = (e: Expr, open: readonly Open[], use: Use): void => {
    if (isFreeCast(e)) uses(e.x, open, use)
    else if (e.kind === 'load') access(e, open, use)
    else if (!use.seen.has(e)) {
      use.seen.add(e)
      compute(e, open, use)
    }
  }
  const compute = (e: Expr, open: readonly Open[], use: Use): void => {
    const own = coordinateIn(e, open)
    own?.alike.refuse(reasonOf(own.name, use.what, use.shown ?? e), e.span ?? use.span)
    if (e.kind === 'binary' && (e.op === 'eq' || e.op === 'ne')) {
      const [a, b] = [coordinateIn(e.a, open), coordinateIn(e.b, open)]
      // Equality is kept if both are permuted identically.
      if (a && b) {
        meet(a, b.alike, storedAt(b.axis), e.span)
        return
      }
    }
    const keeps = use.what === 'index' || (use.shown !== null && isComparison(use.shown))
    for (const [k, x] of children(e).entries())
      if (e.kind === 'select' && k === 0) uses(x, open, { ...use, what: 'condition', shown: null })
      else uses(x, open, { ...use, shown: keeps ? use.shown : e })
  }
  const access = (l: Load, open: readonly Open[], use: Use): void => {
    const b = buffers.get(l.buffer)!
    const dims = dimsOf(b)
    const span = l.span ?? use.span
    for (const [d, x] of l.index.entries()) {
      const o = coordinateIn(x, open)
      if (o) {
        meet(o, dims[d], axes.get(b.axes[d]!) as StoredAxis, span, b.name)
        continue
      }
      dims[d]!.refuse(
        `${b.name} is indexed by ${printExpr1(x)}, which is more than an iterator`,
        x.span ?? span,
      )
      uses(x, open, { ...use, what: 'index', shown: x })
    }
  }
  /**
   * Joins a coordinate with the axis in whose place it is used: both are permuted identically. Their extents must be
   * equal.
   */
  const meet = (o: Open, other: Alike | undefined, axis: StoredAxis, span?: Span, tensor?: string): void => {
    if (other && !sameExpr(storedAt(o.axis).extent, axis.extent)) {
      const [own, its] = [storedAt(o.axis).extent, axis.extent].map((e) => printExpr1(e))
      const place = tensor ? `${axis.name} of ${tensor}` : axis.name
      other.refuse(`${o.name} has ${own} coordinates, and ${place} has ${its}`, span)
    }
    other?.join(o.alike, span)
  }
  return { dimensions, statements }
}

function coordinateIn(e: Expr, open: readonly Open[]): Open | undefined {
  if (isFreeCast(e)) return coordinateIn(e.x, open)
  return e.kind === 'var' ? open.find((o) => o.name === e.name) : undefined
}

const isComparison = (e: Expr): boolean => e.kind === 'binary' && isCompare(e.op)

function reasonOf(name: string, what: Use['what'], shown: Expr): string {
  const text = printExpr1(shown)
  const isCondition = what === 'condition' || isComparison(shown)
  if (isCondition) return `the condition ${text} depends on the coordinate ${name}`
  if (shown.kind === 'var') return `the coordinate ${name} is a value`
  return `${what === 'index' ? 'the index' : 'the value'} ${text} computes with the coordinate ${name}`
}
