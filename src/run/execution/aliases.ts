/** Memory of the caller that one binding uses twice. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { NativeRange } from '../../runtime/device.ts'
import type { Program } from '../compile/compiled-program.ts'
import type { ResidentDense } from './external-memory.ts'

/**
 * Rejects two tensors in overlapping memory if the kernel writes one of them: whether the other one is read before or after depends on
 * the schedule. Throws SptError `device/aliased-arguments`.
 */
export function checkAliases({ plan, device }: Program, tensors: ReadonlyMap<string, ResidentDense>): void {
  const written = new Set(plan.steps.flatMap((s) => ('clear' in s ? [s.clear] : s.writes)))
  const ranges = [...tensors].map(([name, t]) => ({ name, origin: t.origin, range: device.native(t.memory) }))
  ranges.forEach(({ name, origin, range }, k) => {
    const other = ranges.slice(0, k).find((r) => overlap(r.range, range))
    if (!other || !(written.has(name) || written.has(other.name))) return
    failAs('device/aliased-arguments', {
      message: `${other.name} and ${name} of kernel ${plan.kernel} are bound to the same memory (${origin}), and the kernel writes ${written.has(name) ? name : other.name}`,
      expected: 'memory of its own for each tensor that is written, or an `inout` tensor',
      hint: 'bind a copy to one of them',
    })
  })
}

function overlap(a: NativeRange, b: NativeRange): boolean {
  const isAddress = typeof a.memory === 'bigint' && typeof b.memory === 'bigint'
  if (!isAddress && a.memory !== b.memory) return false
  const start = ({ memory, offset }: NativeRange): number =>
    isAddress ? Number(memory as bigint) + offset : offset
  return start(a) < start(b) + b.bytes && start(b) < start(a) + a.bytes
}
