/**
 * Tests of a format before there are data: maps and conditions that do not depend on stored coordinates are evaluated
 * for all coordinates of small tensors, and for the corners of blocks in larger ones. A failure here is a failure for
 * some tensor.
 */
import { fail } from '../../ast/diagnostic.ts'
import { applyMap, point } from '../../columns/coordmap.ts'
import { axisInText, type StoredAxis } from '../../ir/axis.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars, someExpr, walkExpr } from '../../ir/expr-tree.ts'
import type { FormatInstance, Instance } from '../../ir/format.ts'
import { decidingIn, type PartTree } from '../../ir/part-tree.ts'
import { keyOf } from '../../ir/structural-equality.ts'
import { type SpanOption, spanOf } from './format-arguments.ts'
import { type Samples, samples } from './sample-coordinates.ts'

/** Keys of the instances that passed. */
const seen = new Set<string>()
const REMEMBERED = 1000

/**
 * Tests the part of each coordinate, and each part on its coordinates. Below a condition that depends on the data
 * nothing is tested, because its coordinates are unknown. @param firstAlike for each part the first one with the same
 * format and arguments @throws SptError `format/not-inverse`, `format/map-range`, `format/overlap`, `format/leak`
 */
export function tryInstance(instance: Instance, firstAlike: readonly number[], at: SpanOption): void {
  const key = keyOfTrial(instance)
  if (seen.has(key)) return
  const tried = samples(instance.over, constantsOf(instance))
  if (tried) {
    const reached = instance.parts.map(() => new Uint8Array(tried.rows))
    const all = new Uint8Array(tried.rows).fill(1)
    tryTree(instance.tree, all, { instance, tried, at, reached: firstAlike.map((k) => reached[k]!) })
    firstAlike.forEach((first, k) => {
      if (first !== k) return
      const rows = reached[k]!
      tryPart(
        instance.parts[k]!.instance,
        instance.over,
        tried.where((e) => rows[e] === 1),
        at,
      )
    })
  }
  if (seen.size >= REMEMBERED) seen.clear()
  seen.add(key)
}

/** A coordinate, with its shape, that conditions on coordinates and sizes leave to no part; `null`: none is found. */
export function omittedBy(instance: Instance): string | null {
  const tried = samples(instance.over, constantsOf(instance))
  if (!tried) return null
  const t: Trial = { instance, tried, at: {}, reached: instance.parts.map(() => new Uint8Array(tried.rows)) }
  tryTree(instance.tree, new Uint8Array(tried.rows).fill(1), t)
  return t.omitted ?? null
}

function tryPart(part: FormatInstance, over: readonly StoredAxis[], tried: Samples, at: SpanOption): void {
  const known = new Set(tried.names)
  const exprs = [...part.map, ...part.inverse]
  const open = new Set(part.order)
  if (tried.rows === 0 || exprs.some((e) => !decidable(e, known, open))) return
  const names = over.map(axisInText)
  const run = (
    map: readonly Expr[],
    inputs: readonly string[],
    columns: readonly Int32Array[],
  ): Int32Array[] => applyMap({ map, inputs: [...inputs, ...tried.names] }, [...columns, ...tried.columns])
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

interface Trial {
  readonly instance: Instance
  readonly tried: Samples
  /** For each part its rows; equal parts share one array. */
  readonly reached: readonly Uint8Array[]
  readonly at: SpanOption
  /** The first coordinate that the only part of a format leaves out. */
  omitted?: string
}

function tryTree(tree: PartTree, rows: Uint8Array, t: Trial): void {
  if (tree.kind === 'leaf') {
    const mine = t.reached[tree.part]!
    for (let e = 0; e < rows.length; e++) if (rows[e] === 1) mine[e] = 1
  } else if (!decides(tree, t.tried)) {
    // A bucket may receive any coordinate; conditions on data may exclude some.
    if (tree.kind === 'index') for (const child of tree.children) tryTree(child, rows, t)
  } else if (tree.kind === 'index') {
    const index = t.tried.evaluate(tree.index)
    tree.children.forEach((child, k) => {
      tryTree(
        child,
        rows.map((r, e) => (r === 1 && index[e] === k ? 1 : 0)),
        t,
      )
    })
  } else {
    const taken = takers(tree, rows, t)
    tree.cases.forEach((c, k) => {
      tryTree(
        c.child,
        rows.map((r, e) => (r === 1 && taken[e] === k ? 1 : 0)),
        t,
      )
    })
  }
}

/** The number of the case that each row belongs to. */
function takers(tree: Extract<PartTree, { kind: 'cases' }>, rows: Uint8Array, t: Trial): Int32Array {
  const { cases } = tree
  const { instance, tried, at } = t
  const rest = cases[cases.length - 1]!.where === null ? cases.length - 1 : -1
  const taken = new Int32Array(rows.length).fill(rest)
  const names = instance.over.map(axisInText)
  const where = (e: number): string =>
    `${point(names, tried.columns.slice(0, names.length), e)} of ${tried.shape(e)}`
  const holds = cases.map((c) => (c.where ? tried.evaluate(c.where) : null))
  for (let e = 0; e < rows.length; e++) {
    if (rows[e] === 0) continue
    const mine = cases.flatMap((_, k) => (holds[k]?.[e] === 1 ? [k] : []))
    if (mine.length > 1) {
      const [a, b] = mine.map((k) => cases[k]!)
      // Parts with equal text are distinguished by their numbers.
      const called = (c: typeof a, k: number): string =>
        a!.text === b!.text ? `${c!.text} (part ${mine[k]! + 1})` : c!.text
      const first = a!.where?.span
      fail({
        code: 'format/overlap',
        message: `${where(e)} belongs to both ${called(a, 0)} and ${called(b, 1)} of ${instance.text}`,
        ...spanOf(b!.where?.span, at.span, tree.span),
        ...(first && b!.where?.span
          ? { labels: [{ span: first, text: `${called(a, 0)} takes it, too` }] }
          : {}),
        expected: 'conditions, at most one of which holds',
        hint: 'exclude in the second what the first takes, or leave the last part without a condition: the rest',
      })
    }
    taken[e] = mine[0] ?? rest
    // A single format may be meant for tensors that fit it: building rejects the others.
    if (taken[e]! >= 0) continue
    t.omitted ??= where(e)
    if (cases.length > 1)
      fail({
        code: 'format/leak',
        message: `${where(e)} belongs to no part of ${instance.text}`,
        ...spanOf(at.span, tree.span),
        expected: 'a part for each coordinate',
        hint: 'add a part without a condition, which takes the rest',
      })
  }
  return taken
}

/** True if a node distinguishes parts by coordinates and sizes alone. */
function decides(tree: Exclude<PartTree, { kind: 'leaf' }>, tried: Samples): boolean {
  const known = new Set(tried.names)
  return decidingIn(tree).every((e) => decidable(e, known))
}

/** True for integer arithmetic over known columns. */
function decidable(e: Expr, known: ReadonlySet<string>, more: ReadonlySet<string> = new Set()): boolean {
  if ([...freeVars(e)].some((v) => !known.has(v) && !more.has(v))) return false
  return !someExpr(
    e,
    (x) => x.kind === 'load' || x.kind === 'call' || x.kind === 'cast' || x.kind === 'search',
  )
}

function constantsOf({ tree: root, parts }: Instance): number[] {
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
  for (const { instance: p } of parts) for (const e of [...p.map, ...p.inverse]) look(e)
  return [...found]
}

/** Instances with one key have identical results. */
function keyOfTrial({ over, tree, parts }: Instance): string {
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
  return [...over.map(axis), node(tree), ...parts.map((p) => part(p.instance))].join('\n')
}
