/** What the page does: the public API and nothing else, with results that survive JSON. */
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense, devices, load, SptError } from '../../src/index.ts'

type Kind = 'cpu' | 'webgpu'

interface Sample {
  readonly m: number
  readonly n: number
  readonly d: number
  readonly rows: readonly number[]
  readonly columns: readonly number[]
  readonly values: readonly number[]
  readonly b: readonly number[]
}

const inputs = (s: Sample) => ({
  tensors: { A: coords([s.m, s.n], [s.rows, s.columns], s.values), B: dense([s.n, s.d], s.b) },
})

/** C of the kernel at `url` under a schedule, and what the reference says of it. */
export async function product(kind: Kind, url: string, name: string, schedule: string | null, s: Sample) {
  const device = await devices[kind]()
  try {
    const kernel = (await load(url)).kernel(name)
    const compiled = await (schedule ? kernel.schedule(schedule) : kernel).build(device)
    const prepared = await compiled.bind(...flatInputs(inputs(s)))
    await prepared.run()
    const { values } = await prepared.get('C')
    const verified = await prepared.verify()
    prepared.free()
    return { values: [...values!], ok: verified.ok, problems: [...verified.problems], device: device.name }
  } finally {
    await device.dispose()
  }
}

/** A kernel from text with random data, against the reference. */
export async function checked(kind: Kind, text: string, params: Readonly<Record<string, number>>) {
  const device = await devices[kind]()
  try {
    const compiled = await (await load(text)).kernel().build(device)
    const prepared = await compiled.bind(params, { seed: 1 })
    const { ok, problems } = await prepared.verify()
    prepared.free()
    return { ok, problems: [...problems], buffers: device.limits.maxBuffersPerLaunch }
  } finally {
    await device.dispose()
  }
}

/** The codes of the errors a program has. */
export async function mistakes(text: string): Promise<string[]> {
  try {
    await load(text)
    return []
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics.map((d) => d.code)
    throw e
  }
}
