/** Tensorization: a loop nest is replaced by an equivalent instruction (`tensorize`). */

import {
  eliminateRedundantGuards,
  withoutUnreadGuards,
} from '../../../analysis/dependence/redundant-guards.ts'
import { matchInstr } from '../../../analysis/instructions/match.ts'
import { protectedRead } from '../../../analysis/instructions/zero-fill.ts'
import { Facts } from '../../../analysis/integers/facts.ts'
import type { Instr } from '../../../ir/instructions/instr.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import type { LoopLocation } from '../../../ir/statements/definitions.ts'
import { allocations, findLoop, loopsOf, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../../ir/statements/loops.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

/**
 * `tensorize i with multiply`: a declared instruction executes the loop and its body. The loops have the extents of the
 * instruction's iterators and no conditions, the statement is the instruction's body, and buffers are in the memories
 * of the operands. An instruction of several threads runs on the threads of thread.x, to which no loop around may be
 * bound.
 * A copy between local buffers is copied as a whole if no consumer reads the elements that its conditions exclude; so
 * is a product of copies that have all of their elements. A copy that is `padded 0` may have a box beyond the edge of a
 * matrix, or use an instruction that fills with zeros.
 */
export const tensorize = primitive({
  word: 'tensorize',
  call: "tensorize('ii', 'instruction')",
  takes: [arg.loop('loop'), 'with', arg.instruction],
  given: (loop: LoopRef, instr: string | Instr) => ({ loop, instr }),
  apply(cx, step) {
    const found = cx.loop(step.loop)
    for (const l of loopsOf([found.loop])) checkSerial(cx, l, 'tensorize')
    const body = eliminateRedundantGuards(withoutUnreadGuards(cx.kernel, found), found.loop.var)
    checkInstr(cx, { ...cx.kernel, body }, findLoop(body, found.loop.var)!, step.instr)
    const mode = { kind: 'instr', instr: step.instr } as const
    return { body: replaceLoop(body, found.loop.var, (l) => stmt({ ...l, mode })) }
  },
})

/** Throws the mismatch of the loop nest and the instruction, `schedule/guarded` or `schedule/not-idle`. */
export function checkInstr(cx: Context, kernel: Kernel2, { loop, path }: LoopLocation, instr: Instr): void {
  const local = allocations(kernel.body)
  const buffer = (name: string) => local.get(name) ?? kernel.buffers.find((b) => b.name === name)
  const match = matchInstr(instr, loop, { buffer, facts: new Facts({ sizes: kernel.facts }) })
  if (match.kind === 'mismatch') {
    const { code, ...reason } = match.refusal
    cx.refuse(code, [loop], { ...reason, message: `${instr.name}: ${reason.message}` })
  }
  for (const l of match.where.length > 0 && !instr.filled ? match.operands.values() : []) {
    const read = protectedRead(l.index, match.where)
    if (read)
      cx.refuse('schedule/guarded', [loop], {
        message: `${instr.name}: the origin of ${l.buffer} depends on ${printExpr(read)}, which is read only if ${match.where.map((g) => printExpr(g)).join(' and ')}`,
        expected: 'an address that does not depend on a condition',
        hint: 'require that the tiles divide the sizes',
      })
  }
  const onLanes = (l: For): boolean => l.mode.kind === 'bind' && l.mode.to === 'thread.x'
  const taken = instr.threads > 1 ? path.find(onLanes) : undefined
  if (taken)
    cx.refuse('schedule/not-idle', [taken, loop], {
      message: `${instr.name} is executed by ${instr.threads} threads of thread.x, and the enclosing loop ${taken.name} is bound to thread.x`,
      hint: `bind ${taken.name} to thread.y`,
    })
}
