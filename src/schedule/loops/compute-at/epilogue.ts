/**
 * Epilogue fusion: `compute_at scale at jt`, if `scale` comes after the loop nest of `jt`. The results of an iteration
 * of `jt` are consumed at its end. The consumer's loops become loops over the elements that the iteration produces.
 */

import { isIndependent } from '../../../analysis/dependence/loop-writes.ts'
import { conditionKeys } from '../../../analysis/dependence/redundant-guards.ts'
import { type Expr, int } from '../../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../../ir/expressions/expr-tree.ts'
import { accessesOf, type BufferAccess, writesOf } from '../../../ir/statements/accesses.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import { allocations, type LoopLocation, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { isSingleIteration, loopsUsedBy } from '../../../ir/statements/reductions.ts'
import { whenAll } from '../../../ir/statements/statement-builders.ts'
import { type Body, replaceStmt, someStmt, stmt } from '../../../ir/statements/tree.ts'
import { iterationsOf } from '../../legality/loop-dependence.ts'
import { decidingDimensions } from '../../legality/nest-dependence.ts'
import { gone, type Outcome } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import {
  checkCombines,
  checkOwnStarts,
  checkStartsInside,
  consumed,
  perfectChain,
} from './compute-at-checks.ts'
import { covers, elementLoops, onlyWrite, sameElements } from './epilogue-coverage.ts'
import { checkDiagonal, checkGuards, matchIndices } from './epilogue-index-matching.ts'
import { disjointWritesOf, divide, isFirsts, partsAfter, restOf } from './epilogue-multi-part.ts'

/** The consumer and the statement around the producing loop, from one list. */
export interface Pair {
  readonly list: Body
  readonly producer: Stmt
  readonly consumer: For
}

/** Returns the loop nest if it comes after the statement around the loop, in the same list; undefined otherwise. */
export function findConsumer(nest: string, at: LoopLocation): Pair | undefined {
  for (const { list, index, stmt: producer } of at.places) {
    const named = list.filter((s): s is For => s.kind === 'for' && s.nest === nest)
    // If an epilogue of parts has left several loop nests of the name, the consumer is the loop nest that reads the
    // results of the loop.
    const consumer = (named.length > 1 && named.find((s) => reads(s, producer))) || named[0]
    if (consumer && list.indexOf(consumer) > index) return { list, producer, consumer }
  }
  return undefined
}

const reads = (s: Stmt, from: Stmt): boolean => {
  const written = writesOf([from])
  return accessesOf([s]).some((a) => a.mode === 'read' && written.has(a.buffer))
}

export function consumeAt(cx: Context, at: LoopLocation, { list, producer, consumer }: Pair): Outcome {
  const { loop } = at
  const alone = `leave ${consumer.nest} a separate loop nest`
  const refuse = (code: string, message: string, loops: readonly For[], hint = alone): never =>
    cx.refuse(code, loops, { message, hint })
  const written = writesOf([producer])
  const reads = accessesOf([consumer]).filter((a) => a.mode === 'read' && written.has(a.buffer))
  const produced = [...new Set(reads.map((a) => a.buffer))]
  if (produced.length === 0)
    refuse(
      'schedule/not-read',
      `${consumer.nest} does not read a buffer that is written around ${loop.name}`,
      [loop, consumer],
      `choose a loop of a producer of ${consumer.nest}`,
    )
  const own = accessesOf([consumer])
  const after = list.slice(list.indexOf(producer) + 1, list.indexOf(consumer))
  const earlier = list
    .slice(0, list.indexOf(producer))
    .find((s): s is For => s.kind === 'for' && produced.some((b) => writesOf([s]).has(b)))
  const parts = list === cx.kernel.body ? partsAfter(cx, producer, after, produced) : undefined
  const chain = parts ? perfectChain(consumer) : consumed(consumer, reads)
  const between = accessesOf([producer]).concat(
    accessesOf(after).filter((a) => a.buffer !== parts?.buffer.name && !isApart(cx, producer, reads, a)),
  )
  const local = allocations([consumer])
  const clash = between.find((a) =>
    own.some(
      (b) =>
        a.buffer === b.buffer &&
        !local.has(a.buffer) &&
        (a.mode === 'write' || b.mode === 'write') &&
        !(produced.includes(a.buffer) && b.mode === 'read' && someStmt([producer], (s) => s === a.stmt)),
    ),
  )
  if (clash)
    refuse(
      'schedule/order-matters',
      `${consumer.nest} and a nest before it both use ${clash.buffer}`,
      [consumer],
      `${alone}${meeting(after, clash.buffer, produced)}`,
    )
  if (at.places.slice(at.places.findIndex((p) => p.stmt === producer)).some((p) => p.stmt.kind === 'if'))
    refuse(
      'schedule/not-every-element',
      `${loop.name} runs only where a condition around it holds`,
      [loop],
      `choose a loop around the condition, or ${alone}`,
    )
  for (const l of chain)
    if (iterationsOf(cx.kernel, l).dependence)
      refuse('schedule/order-matters', `the order of ${l.name} matters`, [l])

  // The value of each of the consumer's loops, over the elements that the iteration produces.
  const values = new Map<string, Expr>()
  const places = new Map<string, Expr>()
  const exact = new Map<string, boolean>()
  const tails: Expr[] = []
  const elements = elementLoops(consumer.nest, (name) => cx.fresh(name))
  let rows: For | undefined
  const conditions: Expr[] = []
  const guards = chain.flatMap((l) => l.guards)
  // Loops of one iteration whose value no index determines.
  const atStart = chain.filter(isSingleIteration).map((l) => [l.var, int(0)] as const)
  // The consumer's loops are in the order of the buffer with the most loops.
  const writes = produced
    .map((name) => {
      const write = onlyWrite(cx, at, producer, name)
      return { name, write, inner: loopsUsedBy(write.path, write.index) }
    })
    .sort((a, b) => b.inner.length - a.inner.length)
  for (const { name, write, inner } of writes) {
    // An iteration of a reduction loop that indexes the element is the only iteration that reaches the element.
    const names = (l: For): boolean => write.index.some((e) => e.kind === 'var' && e.name === l.var)
    const changing = inner.find((l) => l.reduce) ?? [...at.path, loop].find((l) => l.reduce && !names(l))
    if (changing)
      refuse(
        'schedule/not-complete',
        `${name} is not complete after an iteration of ${loop.name}: ${changing.name} still adds to it`,
        [loop, changing],
        changing === (at.path[0] ?? loop) ? alone : `choose a loop outside of ${changing.name}`,
      )
    const around = [...at.path, loop, ...write.path]
    const own = reads.filter((r) => r.buffer === name)
    const map = elements.add(
      inner,
      own.flatMap((a) =>
        a.index.flatMap((e, d) =>
          (matchIndices(cx, chain, e, write.index[d]!, around) ?? []).flatMap(({ of, value }) => {
            const known = values.get(of.var)
            return known ? [[known, value] as const] : []
          }),
        ),
      ),
    )
    for (const a of own) {
      for (const [d, e] of a.index.entries()) {
        const all = matchIndices(cx, chain, e, write.index[d]!, around)
        if (!all)
          return refuse(
            'schedule/other-elements',
            `${consumer.nest} does not read exactly one element of ${name} in each iteration`,
            [consumer],
          )
        for (const [digit, { of: read, place, value: made, same }] of all.entries()) {
          // The length of a list depends on outer loops, whose values are loops of the producer.
          const of = { ...read, extent: substitute(read.extent, values) }
          if (parts?.buffer.name === name && parts.row === d) rows = read
          const cover = same ? undefined : covers(cx, of, place, around, { name, earlier })
          const whole = cover?.exact ?? true
          if (cover) tails.push(...cover.tails)
          // Surplus values of the last digit are beyond the end, and guarded; surplus values of another digit would be
          // values of the next digit.
          if (digit < all.length - 1 && !whole)
            refuse('schedule/other-elements', `${loop.name} does not make whole tiles of ${of.name}`, [
              consumer,
              loop,
            ])
          exact.set(of.var, whole)
          places.set(of.var, substitute(place, map))
          const value = substitute(made, map)
          const known = values.get(of.var)
          // Copies of one loop become the loop of the first buffer.
          if (!known) values.set(of.var, value)
          else if (!sameElements(known, value, [...around, ...elements.loops]))
            refuse(
              'schedule/other-elements',
              `${consumer.nest} reads elements that different iterations of ${loop.name} produce`,
              [consumer, loop],
              `choose a loop around those iterations, or ${alone}`,
            )
        }
      }
    }
    const consumerGuards = guards.map((g) => substitute(g, new Map([...atStart, ...values])))
    const key = conditionKeys([...around, ...elements.loops])
    checkGuards(cx, around, write.index, chain, { places, exact, map, tails, consumerGuards, key })
    if (parts?.buffer.name === name) conditions.push(substitute(isFirsts(cx.kernel, parts), map))
  }
  for (const [name, value] of atStart) if (!values.has(name)) values.set(name, value)
  const open = chain.find((l) => !values.has(l.var))
  if (open)
    refuse('schedule/other-elements', `what ${consumer.nest} reads does not depend on ${open.name}`, [
      consumer,
      open,
    ])
  const made = elements.loops
  checkDiagonal(cx, chain, [...at.path, loop, ...made], places)
  // Iterations that conflict in a target of the consumer conflict at the new place as well. A loop of one iteration is
  // tested as if it had two, so that it combines if longer loops do.
  const several = (l: For): For => (isSingleIteration(l) ? { ...l, extent: int(2) } : l)
  const met = chain.flatMap((l) =>
    l.reduce && !isIndependent(cx.kernel, several(l)) ? [values.get(l.var)!] : [],
  )
  const meets = (l: For): boolean => met.some((e) => mentions(e, l.var))
  checkCombines(cx, consumer, [...at.path, loop, ...made].filter(meets))
  checkStartsInside(
    cx,
    producer,
    consumer,
    [...at.path, loop].filter((l) => meets(l) && !l.reduce),
  )
  const clones = made.map((l) => (meets(l) ? { ...l, reduce: true } : l))
  const within = [...at.path, loop, ...clones]
  const key = conditionKeys(within)
  const held = new Set(within.flatMap((l) => l.guards.map(key)))
  const left = guards.map((g) => substitute(g, values)).filter((g) => !held.has(key(g)))
  const combined = within.filter(meets)
  checkOwnStarts(cx, consumer, {
    combining: combined,
    elements: clones.filter((l) => !l.reduce),
    conditions: [...left, ...conditions],
  })
  const core = whenAll(left, substituteStmts(chain.at(-1)!.body, values))
  const deepest = clones.findLastIndex((l) => conditions.some((c) => mentions(c, l.var)))
  const nest = clones.reduceRight<Body>(
    (body, l, k) => [stmt<For>({ ...l, body: k === deepest ? whenAll(conditions, body) : body })],
    core,
  )
  const ending = deepest < 0 ? whenAll(conditions, nest) : nest
  const fused = (body: Body): Body =>
    [...at.path, loop].filter(meets).reduce<Body>(
      (b, x) => replaceLoop(b, x.var, (l) => stmt({ ...l, reduce: true })),
      replaceLoop(body, loop.var, (l) => stmt({ ...l, body: [...l.body, ...ending] })),
    )
  if (!parts || !rows)
    return {
      body: fused(replaceStmt(cx.kernel.body, consumer, () => [])),
      gone: chain.map((l) => gone(l, 'merged', [`${loop.nest}.${loop.name}`])),
    }
  const rests = restOf(cx, consumer, rows, parts)
  const body = fused(replaceStmt(cx.kernel.body, consumer, () => rests))
  return { ...divide(cx, body, parts, rests), apart: disjointWritesOf(consumer, rows, parts) }
}

/** The end of a hint: the loop nest that shares elements of the buffer. */
function meeting(after: Body, buffer: string, produced: readonly string[]): string {
  const other = after.find((s): s is For => s.kind === 'for' && writesOf([s]).has(buffer))
  return other && produced.includes(buffer)
    ? `: ${other.nest} may share elements of ${buffer} with other iterations`
    : ''
}

/**
 * Returns whether two loop nests only combine into a buffer, and into different elements, of which the consumer reads
 * the producer's elements only. The consumer must read the elements by a list, because a loop over all elements would
 * reach the elements of the other loop nest as well.
 */
function isApart(cx: Context, producer: Stmt, reads: readonly BufferAccess[], a: BufferAccess): boolean {
  const mine = accessesOf([producer]).filter((w) => w.mode === 'write' && w.buffer === a.buffer)
  const combines = (x: BufferAccess): boolean =>
    x.mode === 'write' && x.stmt.kind === 'reduce' && !x.stmt.init
  const read = reads.filter((r) => r.buffer === a.buffer)
  const listed = (by: readonly number[]): boolean =>
    read.every((r) => by.some((d) => r.index[d]?.kind === 'load'))
  return (
    mine.length > 0 &&
    combines(a) &&
    mine.every((w) => {
      const by = decidingDimensions(cx.kernel, w, a)
      return combines(w) && by !== undefined && listed(by)
    })
  )
}
