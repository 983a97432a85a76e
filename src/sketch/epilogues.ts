/** Epilogues: nests that are elementwise over the result of an earlier nest and can run where it is complete. */

import type { Expr } from '../ir/expressions/expr.ts'
import { someExpr, walkExpr } from '../ir/expressions/expr-tree.ts'
import { getOrAdd } from '../ir/memoize.ts'
import { targetsOf } from '../ir/statements/accesses.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import { exprsOf } from '../ir/statements/tree.ts'
import type { Decisions } from './draft.ts'
import type { NestShape, Strand } from './strands.ts'

/** By nest, the only earlier nest that produces its input, for the nests that have exactly one. */
export function producersOf(nests: readonly NestShape[], kernel: Kernel2): ReadonlyMap<NestShape, NestShape> {
  const producers = new Map<NestShape, NestShape>()
  const writers = new Map<string, NestShape[]>()
  for (const nest of nests) {
    const earlier = new Set(
      nest.strands.flatMap((s) => [...readBuffers(s)].flatMap((b) => writers.get(b) ?? [])),
    )
    const [producer, ...others] = [...earlier].filter((n) => feeds(n, nest, kernel))
    // A buffer that a later nest updates is complete only after that nest.
    const isLast = producer && [...writtenBuffers(producer)].every((b) => writers.get(b)!.at(-1) === producer)
    if (isLast && others.length === 0) producers.set(nest, producer)
    for (const b of writtenBuffers(nest)) getOrAdd(writers, b, () => []).push(nest)
  }
  return producers
}

const writtenBuffers = ({ strands }: NestShape): ReadonlySet<string> =>
  new Set(strands.flatMap((s) => s.writes.flatMap((w) => targetsOf(w).map((t) => t.buffer))))

/** By epilogue, the nest into which it is moved. @param accepts - True if the producer holds a complete element, and the move is legal */
export function chooseEpilogues(
  producers: ReadonlyMap<NestShape, NestShape>,
  d: Decisions,
  accepts: (producer: NestShape, epilogue: NestShape) => boolean,
): ReadonlyMap<NestShape, NestShape> {
  const destinations = new Map<NestShape, NestShape>()
  for (const [nest, producer] of producers) {
    if (destinations.has(producer) || !accepts(producer, nest)) continue
    if (d.form(`${nest.prefix}.at`, [producer.name, 'apart']) === producer.name)
      destinations.set(nest, producer)
  }
  return destinations
}

/** True if the only strand of `producer` reduces into elements that `consumer` reads elementwise. */
function feeds(producer: NestShape, consumer: NestShape, { permutations = [] }: Kernel2): boolean {
  const [source, sink] = [producer.strands[0], consumer.strands[0]]
  if (producer.strands.length !== 1 || consumer.strands.length !== 1 || !source || !sink) return false
  if (!source.loops.some((l) => l.role === 'reduction') || sink.loops.some((l) => l.reduce)) return false
  const spatial = source.loops.filter((l) => !l.reduce).length
  const elements = source.writes.flatMap((w) => targetsOf(w))
  // A scatter through an index list need not reach every row.
  const isIndirect = (e: Expr): boolean =>
    someExpr(e, (x) => x.kind === 'search' || (x.kind === 'load' && !permutations.includes(x.buffer)))
  if (elements.some((t) => t.index.some(isIndirect))) return false
  // If several statements write a buffer, no single one writes every element.
  if (new Set(elements.map((t) => t.buffer)).size < elements.length) return false
  const ranks = new Map(elements.map((t) => [t.buffer, t.index.length]))
  const reads = readBuffers(sink)
  return [...ranks].some(([b, rank]) => reads.has(b) && rank === sink.loops.length && rank === spatial)
}

function readBuffers({ writes }: Strand): ReadonlySet<string> {
  const buffers = new Set<string>()
  for (const w of writes)
    for (const e of exprsOf(w)) walkExpr(e, (x) => x.kind === 'load' && buffers.add(x.buffer))
  return buffers
}
