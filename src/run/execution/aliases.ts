/** Memory of the caller that one binding uses twice. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { NativeRange } from '../../runtime/device.ts'
import type { Program } from '../compile/program.ts'
import type { ResidentDense } from './external-memory.ts'

/**
 * Rejects two tensors in overlapping memory if the kernel writes one of them: whether the other one is read before or after depends on
 * the schedule. Throws SptError `device/aliased-arguments`.
 */
export function checkAliases({ plan }: Program, tensors: ReadonlyMap<string, ResidentDense>): void {
  const written = new Set(plan.steps.flatMap((s) => ('clear' in s ? [s.clear] : s.writes)))
  const list = [...tensors]
  for (const [k, [name, t]] of list.entries())
    for (const [other, o] of list.slice(0, k)) {
      const target = [name, other].find((x) => written.has(x))
      if (target === undefined || !overlap(t.native, o.native)) continue
      failAs('device/aliased-arguments', {
        message: `${other} and ${name} of kernel ${plan.kernel} are bound to the same memory (${t.origin}), and the kernel writes ${target}`,
        expected: 'memory of its own for each tensor that is written, or an `inout` tensor',
        hint: 'bind a copy to one of them',
      })
    }
}

/** Both ranges are of one device, so that both memories are addresses, or neither. */
function overlap(a: NativeRange, b: NativeRange): boolean {
  if (typeof a.memory !== 'bigint' && a.memory !== b.memory) return false
  const start = ({ memory, offset }: NativeRange): number =>
    typeof memory === 'bigint' ? Number(memory) + offset : offset
  return start(a) < start(b) + b.bytes && start(b) < start(a) + a.bytes
}
