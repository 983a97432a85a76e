/** Nests that go element by element over the result of one before: they can run where an element is whole. */
import { targetsOf } from '../../ir/accesses.ts'
import type { Expr } from '../../ir/expr.ts'
import { someExpr, walkExpr } from '../../ir/expr-tree.ts'
import type { Kernel2 } from '../../ir/loops.ts'
import { exprsOf } from '../../ir/tree.ts'
import type { Decisions } from './decisions.ts'
import type { NestShape } from './strands.ts'

/** The only earlier nest that produces the input of a nest, if there is exactly one. */
export function makerOf(
  nest: NestShape,
  before: readonly NestShape[],
  kernel: Kernel2,
): NestShape | undefined {
  const makers = before.filter((n) => feeds(n, nest, kernel))
  const [maker, ...others] = makers
  if (!maker || others.length > 0) return undefined
  // What another nest goes on with is whole after that.
  const made = writtenBy(maker)
  const after = before.slice(before.indexOf(maker) + 1)
  return after.some((n) => [...writtenBy(n)].some((b) => made.has(b))) ? undefined : maker
}

const writtenBy = ({ strands }: NestShape): ReadonlySet<string> =>
  new Set(strands.flatMap((s) => s.writes.flatMap((w) => targetsOf(w).map((t) => t.buffer))))

/** For each nest that is moved, by its name, the one that it is moved into. `holds`: in which an element is ever whole. */
export function epilogues(
  nests: readonly NestShape[],
  kernel: Kernel2,
  d: Decisions,
  holds: (nest: NestShape) => boolean,
): ReadonlyMap<string, string> {
  const moved = new Map<string, string>()
  for (const [k, nest] of nests.entries()) {
    const maker = makerOf(nest, nests.slice(0, k), kernel)
    if (!maker || moved.has(maker.name) || !holds(maker)) continue
    if (d.form(`${nest.called}.at`, [maker.name, 'apart']) === maker.name) moved.set(nest.name, maker.name)
  }
  return moved
}

/** True if one strand of sums produces the elements that the other reads, with as many dimensions. */
function feeds(maker: NestShape, user: NestShape, { permutations = [] }: Kernel2): boolean {
  const [from, to] = [maker.strands[0], user.strands[0]]
  if (maker.strands.length !== 1 || user.strands.length !== 1 || !from || !to) return false
  if (!from.loops.some((l) => l.role === 'reduction') || to.loops.some((l) => l.reduce)) return false
  const spatial = from.loops.filter((l) => !l.reduce).length
  const elements = from.writes.flatMap((w) => targetsOf(w))
  // Of rows that a list names, not all are reached.
  const listed = (e: Expr): boolean =>
    someExpr(e, (x) => x.kind === 'search' || (x.kind === 'load' && !permutations.includes(x.buffer)))
  if (elements.some((t) => t.index.some(listed))) return false
  // Of what several statements write, none is known to write every element.
  if (new Set(elements.map((t) => t.buffer)).size < elements.length) return false
  const ranks = new Map(elements.map((t) => [t.buffer, t.index.length]))
  const read = new Set<string>()
  for (const w of to.writes)
    for (const e of exprsOf(w)) walkExpr(e, (x) => x.kind === 'load' && read.add(x.buffer))
  return [...ranks].some(([b, rank]) => read.has(b) && rank === to.loops.length && rank === spatial)
}
