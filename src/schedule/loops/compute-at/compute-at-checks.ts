/**
 * Legality of producer-consumer fusion (`compute_at`): other uses of the produced buffers, and initialisation of sums.
 */

import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { accessesOf, type BufferAccess } from '../../../ir/statements/accesses.ts'
import { allocations, type LoopLocation } from '../../../ir/statements/definitions.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { initsOf } from '../../../ir/statements/reductions.ts'
import { type Body, walkStmts } from '../../../ir/statements/tree.ts'
import { loopNames } from '../../names/kernel-names.ts'
import type { Context } from '../../state/context.ts'
import { nestName } from '../nests/top-nests.ts'

/**
 * Returns the buffers that the producer writes. Throws `schedule/output-needed` for an output,
 * `schedule/used-elsewhere` for consumers outside of the loop, and `schedule/not-read` if the loop reads no such
 * buffer.
 */
export function checkProducts(cx: Context, producer: For, at: LoopLocation): ReadonlySet<string> {
  const { loop } = at
  const own = accessesOf([producer])
  const local = allocations([producer])
  const produced = new Set(own.flatMap((a) => (a.mode === 'write' && !local.has(a.buffer) ? [a.buffer] : [])))
  const inside = new Set<Stmt>()
  walkStmts([producer, ...loop.body], (s) => inside.add(s))
  for (const name of produced) {
    const { role } = cx.buffer(name)
    if (role !== 'local')
      cx.refuse('schedule/output-needed', [producer], {
        message: `${producer.nest} writes ${name}, an output of the kernel`,
        expected: 'a loop nest that writes local buffers',
      })
    const elsewhere = accessesOf(cx.kernel.body).find(
      (a) => a.buffer === name && !inside.has(a.stmt) && a.stmt.kind !== 'fill',
    )
    if (elsewhere)
      cx.refuse('schedule/used-elsewhere', [producer, loop, ...elsewhere.path.slice(0, 1)], {
        message: `${name} is also used outside of ${loop.name}`,
        hint: aroundUses(cx, producer, at, elsewhere),
      })
  }
  if (!accessesOf(loop.body).some((a) => produced.has(a.buffer)))
    cx.refuse('schedule/not-read', [producer, loop], {
      message: `${loop.name} reads nothing that ${producer.nest} writes`,
      hint: 'choose a loop around the reads',
    })
  return produced
}

/** Throws `schedule/order-matters` if a statement between producer and consumer writes an input of the producer. */
export function checkBetween(cx: Context, list: Body, producer: For, consumer: Stmt, loop: For): void {
  const reads = new Set(accessesOf([producer]).map((a) => a.buffer))
  const between = list.slice(list.indexOf(producer) + 1, list.indexOf(consumer) + 1)
  const written = accessesOf(between).find((a) => a.mode === 'write' && reads.has(a.buffer))
  if (!written) return
  cx.refuse('schedule/order-matters', [producer, loop], {
    message: `${producer.nest} uses ${written.buffer}, which is written before ${loop.name} is reached`,
    hint: `leave ${producer.nest} a separate loop nest`,
  })
}

/** Returns a hint for a buffer with uses outside of the loop: a loop around all uses, or the result of `join`. */
function aroundUses(cx: Context, producer: For, at: LoopLocation, elsewhere: BufferAccess): string {
  const names = loopNames(cx.kernel.body)
  const uses = accessesOf(cx.kernel.body).filter(
    (a) => a.buffer === elsewhere.buffer && a.stmt.kind !== 'fill' && !a.path.includes(producer),
  )
  const around = at.path.findLast((l) => uses.every((a) => a.path.includes(l)))
  if (around) return `compute_at ${producer.nest} at ${names.get(around.var)}`
  const nests = new Set(uses.map((a) => a.path[0]?.nest))
  const loops = [...at.path, at.loop]
  const isIdentical = (a: BufferAccess): boolean =>
    a.mode === 'read' && loops.every((l, k) => a.path[k] && sameExpr(a.path[k].extent, l.extent))
  if (nests.size < 2 || !uses.every(isIdentical)) return `leave ${producer.nest} a separate loop nest`
  const joined = nestName(cx, [...nests] as string[], 'joined')
  const { nest, name } = at.loop
  // Joined loops have the names of the first nest.
  const first = uses[0]!.path[at.path.length]?.name ?? name
  return `join (${[...nests].join(', ')}) at ${nest}.${name}, then compute_at ${producer.nest} at ${joined}.${first}`
}

/**
 * Returns the reduction loop of the consumer, around or at the loop, that would repeat an initialisation of the
 * producer; undefined if there is no such loop. Sums are initialised before the outermost reduction loop, unless the
 * buffer is allocated inside.
 */
export function reductionAround(producer: For, consumer: Stmt, at: LoopLocation): For | undefined {
  if (initsOf([producer]).length === 0) return undefined
  const around = [...at.path, at.loop]
  return around.slice(Math.max(0, around.indexOf(consumer as For))).find((l) => l.reduce)
}

export function refuseStart(cx: Context, producer: For, reducing: For, at: LoopLocation): never {
  const names = loopNames(cx.kernel.body)
  const [loop, outer] = [at.loop, [...at.path, at.loop].find((_, k, all) => all[k + 1] === reducing)]
  const own = `compute_at ${producer.nest} at ${names.get(loop.var)} recompute: each iteration has memory of its own`
  return cx.refuse('schedule/starts-in-reduction', [producer, reducing], {
    message: `${producer.nest} would reset the sums in each iteration of the reduction loop ${reducing.name}`,
    hint: outer ? `compute_at ${producer.nest} at ${names.get(outer.var)}, or ${own}` : own,
  })
}

/**
 * Throws `schedule/used-elsewhere` for counts that the host reads, and `schedule/lost-writes` for writes of elements
 * that may not be stored: skipped iterations would change both.
 */
export function checkUnseen(cx: Context, producer: For, loop: For, produced: ReadonlySet<string>): void {
  const { capacities = [], runtimeLists: found = [] } = cx.kernel
  const counts = [...capacities.map((c) => c.counts), ...found.flatMap((f) => f.parts.map((p) => p.counts))]
  const counted = counts.find((b) => produced.has(b))
  if (counted !== undefined)
    cx.refuse('schedule/used-elsewhere', [producer, loop], {
      message: `${counted} is read after the kernel has run`,
      hint: `leave ${producer.nest} a separate loop nest`,
    })
  walkStmts([producer], (s) => {
    if (s.kind !== 'if' || s.absent === undefined || !produced.has(s.absent)) return
    cx.refuse('schedule/lost-writes', [producer, loop], {
      message: `${producer.nest} may write elements that ${s.absent} does not store, which is a run-time error`,
      expected: 'writes of stored elements only',
      hint: `iterate ${producer.nest} … where (${printExpr(s.cond)})`,
    })
  })
}
