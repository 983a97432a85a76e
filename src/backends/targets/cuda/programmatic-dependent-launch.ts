/**
 * Programmatic dependent launch (CUDA): a launch may begin while the previous one still runs, and waits for it in its own
 * code.
 *
 * Correctness: the wait returns when all of the previous launch has finished and its writes are visible. That launch cannot
 * have finished before its own wait returned, because every thread executes one; so by induction all earlier steps have
 * finished. Before the wait, a thread accesses no buffer that an earlier step writes, and writes none that an earlier step
 * reads. Earlier runs have finished by then: the first step of a run, or its part before it releases the next launch, follows
 * all previously queued work.
 */

import { sharedTemporaries } from '../../../analysis/loops/temporary-memory.ts'
import { roundsAround } from '../../../ir/coordinates/rounds.ts'
import type { InstrCall } from '../../../ir/instructions/instr-call.ts'
import { instrCall } from '../../../ir/instructions/instr-call.ts'
import { accessedBy, accessesOf } from '../../../ir/statements/accesses.ts'
import type { Kernel3, Stmt } from '../../../ir/statements/loops.ts'
import type { Body } from '../../../ir/statements/tree.ts'

export interface Overlap {
  /** True if another launch follows, which may begin once all blocks of this launch have begun. */
  readonly leads: boolean
  /** Buffers that must not be accessed before the wait; undefined for launches that do not wait. */
  readonly dependent: ReadonlySet<string> | undefined
}

/** Overlap of each launch of the plan, in order. */
export function overlapsOf(plan: Kernel3): Overlap[] {
  const shared = sharedTemporaries(plan)
  const memoryOf = (name: string): string => shared.get(name) ?? name
  /** Memory that earlier steps access: temporaries may share memory. */
  const readBefore = new Set<string>()
  const writtenBefore = new Set<string>()
  const out: Overlap[] = []
  for (const [k, step] of plan.steps.entries()) {
    // Launches of rounds follow the launches of the previous round.
    const steps = step.kind === 'rounds' ? plan.steps.slice(...roundsAround(plan.steps, k + 1)) : [step]
    const accesses = steps.map(accessedBy)
    const [reads, writes] = [accesses.flatMap((a) => a.reads), accesses.flatMap((a) => a.writes)]
    if (step.kind === 'launch') {
      const dependent = new Set([...reads, ...writes].filter((b) => writtenBefore.has(memoryOf(b))))
      for (const b of writes) if (readBefore.has(memoryOf(b))) dependent.add(b)
      out.push({ leads: k + 1 < plan.steps.length, dependent: k > 0 ? dependent : undefined })
    }
    for (const b of reads) readBefore.add(memoryOf(b))
    for (const b of writes) writtenBefore.add(memoryOf(b))
  }
  return out
}

/** Inserts the wait as late as possible: once on every path of a thread, before the first access to a `dependent` buffer. */
export function insertWait(body: Body, dependent: ReadonlySet<string>, wait: Stmt): readonly Stmt[] {
  const index = body.findIndex((s) => touches([s], dependent))
  const first = body[index]
  if (!first) return [...body, wait]
  if (first.kind !== 'if' || touches([{ ...first, then: [], else: [] }], dependent))
    return [...body.slice(0, index), wait, ...body.slice(index)]
  const branch = {
    ...first,
    then: insertWait(first.then, dependent, wait),
    else: insertWait(first.else, dependent, wait),
  }
  return [...body.slice(0, index), branch, ...body.slice(index + 1)]
}

const touches = (body: Body, dependent: ReadonlySet<string>): boolean =>
  accessesOf(body).some((a) => dependent.has(a.buffer))

/** A statement in the source language of a target. */
export const rawStatement = (target: string, text: string): InstrCall =>
  instrCall({ instr: text, threads: 1, texts: [{ target, from: 0, pieces: [text] }] })
