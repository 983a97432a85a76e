/**
 * Rejects launches that exceed the limits of every CUDA device before printing; otherwise the compiler or the launch would
 * fail.
 */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import type { InstrCall } from '../../../ir/instructions/instr-call.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { allocations } from '../../../ir/statements/definitions.ts'
import type { Buffer, Launch } from '../../../ir/statements/loops.ts'
import { stmtsOf } from '../../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../../ir/values/dtype.ts'
import { rejectSharedOverflow, sharedArrays } from '../../memory/shared-memory-liveness.ts'
import { WARP } from './spellings.ts'

const KIB = 1024

/** Maximum shared memory per block in bytes, by compute capability (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"). */
const SHARED_LIMITS: readonly (readonly [number, number])[] = [
  [5.0, 48 * KIB],
  [7.0, 96 * KIB],
  [7.5, 64 * KIB],
  [8.0, 163 * KIB],
  [8.6, 99 * KIB],
  [8.7, 163 * KIB],
  [8.9, 99 * KIB],
  [9.0, 227 * KIB],
  [12.0, 99 * KIB],
]
const LATEST_KNOWN = 12.1
const MAX_SHARED = Math.max(...SHARED_LIMITS.map(([, bytes]) => bytes))

/**
 * Bytes of shared memory per block at a compute capability; the maximum over all devices if it is absent or newer than the
 * table.
 */
const sharedLimit = (capability: number): number =>
  capability > LATEST_KNOWN
    ? MAX_SHARED
    : (SHARED_LIMITS.findLast(([from]) => capability >= from)?.[1] ?? MAX_SHARED)

/** @throws SptError `plan/shared-too-large` */
export const rejectCudaSharedOverflow = (launch: Launch, total: number): void =>
  rejectSharedOverflow(
    launch.name,
    total,
    sharedArrays(launch, (b) => DTYPE_BYTES[b.dtype]),
    { limit: MAX_SHARED, holder: 'no CUDA device has more than' },
  )

/** Checks a printed entry for devices of a compute capability. @throws SptError `plan/shared-too-large` */
export const rejectSharedOverflowAt = (
  capability: number,
  { name, sharedBytes }: { readonly name: string; readonly sharedBytes: number },
): void =>
  rejectSharedOverflow(name, sharedBytes, [], {
    limit: sharedLimit(capability),
    holder: `devices of compute capability ${capability.toFixed(1)} have`,
  })

/** Number of 32-bit registers of an SM (compute capability 5.0 or higher), and maximum per thread. */
const REGISTERS = 65_536
const MAX_THREAD_REGISTERS = 255
/** Allocation granularity of registers per warp. */
export const REGISTER_UNIT = 256
/** Registers that ptxas (13.0) needs in addition to an instruction's results, measured: 90 for 64 results, 154 for 128. */
const EXTRA_REGISTERS = 26

/** Maximum registers per thread of a block with this many threads. */
function registersPerThread(threads: number): number {
  const units = Math.floor(REGISTERS / REGISTER_UNIT / Math.ceil(threads / WARP))
  return Math.min(MAX_THREAD_REGISTERS, (units * REGISTER_UNIT) / WARP)
}

/**
 * Rejects asynchronous instructions with more results than a thread has registers. The results stay in registers until the
 * wait, so they cannot be spilled.
 * @throws SptError `emit/registers`
 */
export function rejectRegisterOverflow(launch: Launch): void {
  const threads = launch.block.reduce((a, b) => a * b, 1)
  const available = registersPerThread(threads)
  const buffers = allocations(launch.body)
  for (const s of stmtsOf(launch.body, 'instr')) {
    const results = s.asynchronous ? resultRegisters(s, buffers) : 0
    if (results + EXTRA_REGISTERS <= available) continue
    failWith(
      'emit/registers',
      `${launch.name} needs too many registers: ${s.instr} holds ${results} of each thread and takes ${EXTRA_REGISTERS} more, and blocks of ${launch.block.join(' × ')} threads leave ${available} to a thread`,
      {
        ...(s.span && { span: s.span }),
        expected: `a tile of at most ${available - EXTRA_REGISTERS} registers a thread at ${threads} threads`,
        hint: 'give the instruction a smaller tile (fewer columns), or the block fewer threads (fewer rows)',
      },
    )
  }
}

/** Number of registers that an instruction call writes; two 16-bit elements may share one. */
function resultRegisters(s: InstrCall, buffers: ReadonlyMap<string, Buffer>): number {
  const bytes = new Map<string, number>()
  for (const p of s.texts.find((t) => t.target === 'cuda')?.pieces ?? []) {
    if (typeof p === 'string' || (p.kind !== 'slot' && p.kind !== 'word') || p.mode === 'read') continue
    const b = buffers.get(p.buffer)
    if (b?.scope !== 'register' || b.memory?.opaque) continue
    const size = p.kind === 'word' ? 4 : DTYPE_BYTES[b.dtype]
    bytes.set(`${p.kind} ${p.buffer}[${p.index.map(printExpr).join()}]`, size)
  }
  return Math.ceil([...bytes.values()].reduce((sum, n) => sum + n, 0) / 4)
}
