/** Whole models: the auto-scheduler schedules every loop nest on GPUs, and results agree with the reference. */
import { expect, test } from 'vitest'
import { devices, type Kernel, load } from '../../src/node.ts'

interface Model {
  readonly file: string
  readonly kernel: string
  /** A schedule of steps on coordinates, which is applied first. */
  readonly formats?: string
  readonly sizes: Readonly<Record<string, number>>
  /** Values of the run on the CPU; others are random. */
  readonly values?: Readonly<Record<string, number | Int32Array>>
}

const MODELS: readonly Model[] = [
  {
    file: 'examples/training/graphsage.spt',
    kernel: 'graphsage_step',
    sizes: { nodes: 20, features: 12, hidden: 8, classes: 3 },
    values: { keep: 1, decay: 0.01, labels: Int32Array.from({ length: 20 }, (_, k) => k % 3) },
  },
  {
    file: 'test/models/rgcn.spt',
    kernel: 'relational',
    sizes: { relations: 3, nodes: 16, features: 8, hidden: 8, classes: 4 },
  },
  {
    file: 'examples/training/encoder.spt',
    kernel: 'encoder',
    sizes: { sequences: 2, tokens: 6, heads: 2, d: 4, hidden: 16, classes: 3 },
  },
  {
    file: 'kernels/expert-layer.spt',
    kernel: 'expert_layer_f16',
    sizes: { experts: 4, tokens: 12, k: 8, h: 16, n: 8 },
    values: { top: 2 },
  },
  {
    file: 'test/models/rectified.spt',
    kernel: 'perceptron',
    formats: 'live',
    sizes: { m: 32, k: 16, hidden: 32, n: 8 },
  },
  { file: 'test/models/lengths.spt', kernel: 'lengths', sizes: { sequences: 3, tokens: 8, d: 8 } },
  { file: 'test/models/voxels.spt', kernel: 'voxels', sizes: { offsets: 3, n: 16, d: 8 } },
  { file: 'test/models/longformer.spt', kernel: 'longformer', sizes: { heads: 2, n: 24, d: 8 } },
]

const kernelOf = async ({ file, kernel, formats }: Model): Promise<Kernel> => {
  const declared = (await load(file)).kernel(kernel)
  return formats === undefined ? declared : declared.schedule(formats)
}

for (const model of MODELS)
  test(`${model.file}: every loop nest has a schedule on GPUs, and the result is that of the reference`, async () => {
    const kernel = await kernelOf(model)
    for (const device of ['webgpu', 'cuda'] as const) {
      const [candidate] = kernel.inspect.scheduleCandidates(device, model.sizes)
      expect(candidate!.plain).toEqual([])
    }
    const built = await kernel.build(await devices.cpu(), { sizes: model.sizes })
    const binding = await built.bind({ ...model.sizes, ...model.values }, { seed: 5 })
    const { ok, problems } = await binding.verify()
    expect(problems.slice(0, 1)).toEqual([])
    expect(ok).toBe(true)
  })
