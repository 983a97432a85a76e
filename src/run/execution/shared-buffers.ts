/** Several plans of one kernel on the same data: shared memory, and the launches that compute run-time structure. */
import type { Clear } from '../../ir/statements/loops.ts'
import type { LaunchStep } from '../../plan/launch-plan.ts'
import type { Command, DeviceBuffer } from '../../runtime/device.ts'
import { callerTensor, isRowMajor } from '../bind/bind-plan.ts'
import type { Bound } from '../bind/index.ts'
import type { Program } from '../compile/compiled-program.ts'
import { byteLength } from './buffer-layout.ts'
import type { Executable } from './execute.ts'
import { commandsOf } from './launch-commands.ts'

/** Device buffers of an executable that another program of the same kernel can share: tensors that both store as declared. */
export function commonBuffers(
  owner: Executable,
  { program, bound }: { readonly program: Program; readonly bound: Bound },
): ReadonlyMap<string, DeviceBuffer> {
  const { device } = program
  const ownBuffers = new Map(owner.program.plan.buffers.map((b) => [b.name, b]))
  const asDeclared = (b: Bound, name: string): boolean => {
    const t = callerTensor(b.kernel, name)
    return t !== undefined && isRowMajor(t)
  }
  const out = new Map<string, DeviceBuffer>()
  for (const b of program.plan.buffers) {
    const same = ownBuffers.get(b.name)
    if (!same || same.role !== b.role || same.dtype !== b.dtype || owner.chained.has(b.name)) continue
    if (b.role === 'local' || b.role === 'index') continue
    if (!asDeclared(owner.bound, b.name) || !asDeclared(bound, b.name)) continue
    if (byteLength(device, same, owner.bound) !== byteLength(device, b, bound)) continue
    out.set(b.name, owner.memory.get(b.name)!)
  }
  return out
}

/**
 * Commands after which these buffers have the same contents as after a run. Empty if the commands would write more than temporaries, which
 * are private.
 */
export function commandsMeasuring(
  { program, bound, memory }: Executable,
  buffers: readonly string[],
): readonly Command[] {
  const { plan } = program
  const needed = new Set(buffers)
  const taken = new Set<Clear | LaunchStep>()
  for (const step of plan.steps.toReversed()) {
    const writes = writtenBy(step)
    if (!writes.some((b) => needed.has(b))) continue
    taken.add(step)
    for (const b of [...writes, ...(step.kind === 'clear' ? [] : step.reads)]) needed.add(b)
  }
  const written = [...taken].flatMap(writtenBy)
  const isOwn = plan.buffers.every((b) => b.role === 'local' || !written.includes(b.name))
  return isOwn ? commandsOf(program, bound, memory, (step) => taken.has(step)) : []
}

const writtenBy = (step: Clear | LaunchStep): readonly string[] =>
  step.kind === 'clear' ? [step.buffer] : [...step.writes]
