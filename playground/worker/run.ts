/** A run of a kernel: compiled, bound, compared with the reference, and timed. */
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Binding } from '../../src/index.ts'
import { decoder } from '../../src/storage/tensor.ts'
import type { DeviceChoice, Problem, RunResult, Variant } from '../protocol.ts'
import { baseOf, deviceOf, inFormat, scheduled } from './compiler.ts'

/** Buffers of more bytes are compared on a sample of rows. */
const SAMPLE_FROM = 2 ** 24
const SAMPLED = 200
/** Milliseconds for all timed runs; those of a sample. */
const TIMING_MS = 100
const SHORT_MS = 2
/** Most runs of a sample. */
const MAX_BATCH = 1024

/** Runs the kernel, compares it with the reference, and times it. */
export async function runOf(problem: Problem, variant: Variant, kind: DeviceChoice): Promise<RunResult> {
  const base = await baseOf(problem)
  const device = await deviceOf(kind)
  const start = performance.now()
  const isDefault = variant.schedule.trim() === ''
  const { kernel, note } =
    isDefault && base.kernel.dispatch === null
      ? {
          kernel: variant.format.trim()
            ? await inFormat(base.program, base.kernel, variant.format)
            : base.kernel,
          note: '',
        }
      : await scheduled(base, variant, device)
  const compiled = await kernel.build(device)
  const built = performance.now()
  try {
    const prepared = await compiled.bind(...flatInputs(base.inputs))
    const bound = performance.now()
    try {
      const sample = prepared.executable.bytes > SAMPLE_FROM ? { sample: { count: SAMPLED, seed: 1 } } : {}
      const v = await prepared.verify(sample)
      const verified = performance.now()
      const timing = await timesOf(prepared)
      const outputs = Object.entries(await prepared.outputs()).map(([name, t]) => {
        const read = decoder(t.dtype)
        const values = Array.from({ length: Math.min(8, t.values?.length ?? 0) }, (_, k) =>
          Number(read ? read(t.values![k]!) : t.values![k]),
        )
        return { name, shape: t.shape, values }
      })
      return {
        device: device.name,
        schedule: note || variant.schedule || 'default schedule',
        ok: v.ok,
        verdict: v.verdict,
        problems: v.problems,
        warnings: v.warnings,
        relativeError: v.maxRelativeError,
        elements: v.elements,
        compared: v.compared,
        ...timing,
        buildMs: built - start,
        bindMs: bound - built,
        verifyMs: verified - bound,
        bytes: prepared.executable.bytes,
        random: base.kernel.source.buffers
          .filter(
            (b) =>
              (b.role === 'in' || b.role === 'inout') && !b.table && !(b.name in (base.inputs.tensors ?? {})),
          )
          .map((b) => b.name),
        deterministic: prepared.deterministic,
        outputs,
      }
    } finally {
      prepared.free()
    }
  } finally {
    compiled.release()
  }
}

/** Milliseconds of a run, several times. Clocks of browsers are coarse, so a sample of short runs is the mean of many. */
async function timesOf(binding: Pick<Binding, 'measure'>): Promise<Pick<RunResult, 'times' | 'runs'>> {
  let batch = 1
  let sample = 0
  const sampled = async (repeats: number): Promise<readonly number[]> =>
    (await binding.measure({ warmups: 0, repeats, batch, by: 'launches' })).times
  for (; batch < MAX_BATCH; batch *= 4) {
    sample = batch * (await sampled(1))[0]!
    if (sample >= SHORT_MS) break
  }
  const fitting = Math.floor(TIMING_MS / Math.max(sample, SHORT_MS))
  const repeats = Math.min(50, Math.max(sample > TIMING_MS ? 1 : 3, fitting))
  return { times: await sampled(repeats), runs: repeats * batch }
}
