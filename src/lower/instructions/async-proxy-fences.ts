/**
 * Checks proxy fences (`fence.proxy.async`). If an instruction reads shared memory through the async proxy, every instruction that fills
 * this memory must be declared `fenced`, because the proxy may not see ordinary stores or asynchronous copies of the threads (PTX ISA,
 * "Async proxy").
 */
import { matchInstr } from '../../analysis/instructions/match.ts'
import type { Facts } from '../../analysis/integers/facts.ts'
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, walkStmts } from '../../ir/statements/tree.ts'

interface Reader {
  readonly loop: For
  readonly instr: Instr
  readonly operand: string
}

/** Throws SptError `schedule/unfenced` if an instruction reads a buffer through the async proxy that is filled without a fence. */
export function checkFences(body: Body, buffers: ReadonlyMap<string, Buffer>, facts: Facts): void {
  const readers = new Map<string, Reader>()
  const writers = new Map<string, string>()
  const ordinary = (s: Stmt, by: string): void => {
    for (const a of accessesOf([s]))
      if (a.mode === 'write' && !writers.has(a.buffer)) writers.set(a.buffer, by)
  }
  walkStmts(body, (s, path) => {
    if (s.kind !== 'for' || s.mode.kind !== 'instr') {
      if (s.kind === 'store' || s.kind === 'reduce') ordinary(s, path.at(-1)?.nest ?? 'a store')
      return true
    }
    const { instr } = s.mode
    const match = matchInstr(instr, s, { buffer: (name) => buffers.get(name), facts })
    if (match.kind === 'mismatch') return false
    for (const o of instr.operands) {
      const at = match.operands.get(o.name)
      if (!at) continue
      if (o.mode !== 'write' && o.fenced) readers.set(at.buffer, { loop: s, instr, operand: o.name })
      if (o.mode !== 'read' && !o.fenced) ordinary(s, instr.name)
    }
    return false
  })
  for (const [buffer, { loop, instr, operand }] of readers) {
    const by = writers.get(buffer)
    if (by === undefined) continue
    failAs('schedule/unfenced', {
      message: `${instr.name} reads operand ${operand} through the async proxy, and ${by} fills ${buffer} without a fence`,
      ...(loop.span ? { span: loop.span } : {}),
      expected: `${buffer} filled by instructions whose written operand is declared \`fenced\``,
      hint: 'tensorize the copy with an instruction that writes through the proxy or ends with a fence',
    })
  }
}
