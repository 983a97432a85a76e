/**
 * Trying a format before there are data: maps and conditions that ask nothing of stored coordinates run over small
 * tensors whole, and over the corners of blocks in larger ones. What fails here fails for some tensor.
 */
import { fail } from '../ast/diagnostic.ts'
import type { StoredAxis } from '../ir/axis.ts'
import { type Expr, freeVars, keyOf, someExpr, walkExpr } from '../ir/expr.ts'
import type { FormatInstance, Instance, PartTree } from '../ir/format.ts'
import { applyMap, point } from './coordmap.ts'
import { type At, spanOf } from './instantiate-arguments.ts'
import { type Samples, samples } from './instantiate-samples.ts'

/** Texts of what was tried and held, by the parts of an instance that decide. */
const held = new Set<string>()
const REMEMBERED = 1000

/**
 * Tries `parts`, each on all that it can hold, and which part each coordinate goes to.
 * @throws SptError `format/not-inverse`, `format/map-range`, `format/overlap`, `format/leak`
 */
export function tryInstance(instance: Instance, parts: readonly FormatInstance[], at: At): void {
  const key = keyOfTrial(instance, parts)
  if (held.has(key)) return
  const tried = samples(instance.over, constantsOf(instance.tree, parts))
  if (tried) {
    for (const part of parts) tryPart(part, instance.over, tried, at)
    tryTree(instance.tree, instance, tried, at)
  }
  if (held.size >= REMEMBERED) held.clear()
  held.add(key)
}

function tryPart(part: FormatInstance, over: readonly StoredAxis[], all: Samples, at: At): void {
  const known = new Set(all.names)
  const exprs = [...part.map, ...part.inverse]
  const open = new Set(part.order)
  if (exprs.some((e) => !decidable(e, known, open))) return
  const tried = part.where ? (decidable(part.where, known) ? keep(all, part.where) : null) : all
  if (!tried || tried.columns[0]!.length === 0) return
  const names = over.map((a) => a.name)
  const run = (
    map: readonly Expr[],
    inputs: readonly string[],
    columns: readonly Int32Array[],
  ): Int32Array[] =>
    applyMap({ map, inputs: [...inputs, ...tried.names], strict: true }, [...columns, ...tried.columns])
  const coords = tried.columns.slice(0, over.length)
  const mapped = run(part.map, [], [])
  part.order.forEach((name, k) => {
    const axis = part.axes.find((a) => a.name === name)!
    const bounded = decidable(axis.extent, known)
    const extents = bounded ? run([axis.extent], [], [])[0]! : null
    const c = mapped[k]!
    for (let e = 0; e < c.length; e++) {
      if (c[e]! >= 0 && (!extents || c[e]! < extents[e]!)) continue
      fail({
        code: 'format/map-range',
        message: `${part.text} puts ${point(names, coords, e)} of ${tried.shape(e)} at ${c[e]} on axis ${name}`,
        ...spanOf(part.map[k]!.span, at.span, axis.span),
        expected: extents
          ? `0 to ${extents[e]! - 1}, the extent of ${name} being ${extents[e]}`
          : '0 or more',
        hint: 'correct the map, or the extent of the axis',
      })
    }
  })
  const back = run(part.inverse, part.order, mapped)
  for (let k = 0; k < coords.length; k++)
    for (let e = 0; e < coords[k]!.length; e++) {
      if (back[k]![e] === coords[k]![e]) continue
      fail({
        code: 'format/not-inverse',
        message: `the inverse of ${part.text} does not undo its map: ${point(names, coords, e)} of ${tried.shape(e)} goes to ${point(part.order, mapped, e)}, and that back to (${back.map((c) => c[e]).join(', ')})`,
        ...spanOf(part.inverse[k]!.span, at.span),
        expected: 'the coordinate it came from',
        hint: 'the map must keep different coordinates apart, and the inverse must name the old ones in order',
      })
    }
}

const keep = (tried: Samples, where: Expr): Samples => {
  const holds = tried.evaluate(where)
  return tried.where((e) => holds[e] === 1)
}

/** Nodes that ask nothing, and below them the same with the coordinates that reach each child. */
function tryTree(tree: PartTree, instance: Instance, tried: Samples, at: At): void {
  if (tried.columns[0]!.length === 0 || !decides(tree, tried)) return
  if (tree.kind === 'index') {
    const index = tried.evaluate(tree.index)
    tree.children.forEach((child, k) => {
      if (decides(child, tried))
        tryTree(
          child,
          instance,
          tried.where((e) => index[e] === k),
          at,
        )
    })
    return
  }
  const holds = tree.cases.map((c) => (c.where ? tried.evaluate(c.where) : null))
  const coords = tried.columns.slice(0, instance.over.length)
  const names = instance.over.map((a) => a.name)
  const rest = tree.cases[tree.cases.length - 1]!.where === null
  for (let e = 0; e < coords[0]!.length; e++) {
    const takers = tree.cases.filter((_, k) => holds[k]?.[e] === 1)
    const where = (): string => `${point(names, coords, e)} of ${tried.shape(e)}`
    if (takers.length > 1)
      fail({
        code: 'format/overlap',
        message: `${where()} belongs to both ${takers[0]!.text} and ${takers[1]!.text} of ${instance.text}`,
        ...spanOf(takers[1]!.where?.span, at.span, tree.span),
        expected: 'conditions of which one holds at most',
        hint: 'exclude in the second what the first takes, or leave the last part without a condition: the rest',
      })
    // A format alone may be meant for tensors that fit it: building refuses the others.
    if (takers.length === 0 && !rest && tree.cases.length > 1)
      fail({
        code: 'format/leak',
        message: `${where()} belongs to no part of ${instance.text}`,
        ...spanOf(at.span, tree.span),
        expected: 'a part for each coordinate',
        hint: 'add a part without a condition, which takes the rest',
      })
  }
  tree.cases.forEach((c, k) => {
    if (!decides(c.child, tried)) return
    const own = holds[k]
    tryTree(
      c.child,
      instance,
      tried.where((e) => (own ? own[e] === 1 : holds.every((x) => x?.[e] !== 1))),
      at,
    )
  })
}

/** Whether a node tells parts apart by coordinates and sizes alone. */
function decides(tree: PartTree, tried: Samples): tree is Exclude<PartTree, { kind: 'leaf' }> {
  if (tree.kind === 'leaf') return false
  const exprs = tree.kind === 'index' ? [tree.index] : tree.cases.flatMap((c) => (c.where ? [c.where] : []))
  const known = new Set(tried.names)
  return exprs.every((e) => decidable(e, known))
}

/** Integer arithmetic over known columns. */
function decidable(e: Expr, known: ReadonlySet<string>, more: ReadonlySet<string> = new Set()): boolean {
  if ([...freeVars(e)].some((v) => !known.has(v) && !more.has(v))) return false
  return !someExpr(
    e,
    (x) => x.kind === 'load' || x.kind === 'call' || x.kind === 'cast' || x.kind === 'search',
  )
}

function constantsOf(root: PartTree, parts: readonly FormatInstance[]): number[] {
  const found = new Set<number>()
  const look = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'const' && Number.isInteger(x.value)) found.add(Math.abs(x.value))
    })
  const tree = (t: PartTree): void => {
    if (t.kind === 'index') {
      look(t.index)
      t.children.forEach(tree)
    } else if (t.kind === 'cases')
      for (const c of t.cases) {
        if (c.where) look(c.where)
        tree(c.child)
      }
  }
  tree(root)
  for (const p of parts) for (const e of [...p.map, ...p.inverse]) look(e)
  return [...found]
}

/** Trials with one key hold and fail alike. */
function keyOfTrial({ over, tree }: Instance, parts: readonly FormatInstance[]): string {
  const node = (t: PartTree): string => {
    if (t.kind === 'leaf') return String(t.part)
    return t.kind === 'index'
      ? `(${keyOf(t.index)} ${t.children.map(node).join(' ')})`
      : `(${t.cases.map((c) => `${c.where ? keyOf(c.where) : ''}: ${node(c.child)}`).join(', ')})`
  }
  const axis = (a: StoredAxis): string => `${a.name} ${keyOf(a.extent)}`
  const part = (p: FormatInstance): string =>
    [
      p.order.join(),
      ...p.axes.map(axis),
      ...p.map.map(keyOf),
      ...p.inverse.map(keyOf),
      p.where ? keyOf(p.where) : '',
    ].join(' ')
  return [...over.map(axis), node(tree), ...parts.map(part)].join('\n')
}
