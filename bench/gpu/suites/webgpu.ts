/** The same products on WebGPU: against naive kernels there, and against our CUDA on the same GPU. */
import { fieldOf, widthValues } from '../candidates.ts'
import { type Case, type Contestant, compete, type Entry } from '../case.ts'
import { floor, type Least } from '../ceilings.ts'
import { ExpectedProduct, ExpectedSamples } from '../expected.ts'
import type { Csr } from '../matrix.ts'
import type { OurDevice } from '../ours.ts'
import { normals } from '../random.ts'
import type { Session } from '../session.ts'
import { Formats, leastProduct, ourProduct } from './products.ts'
import { leastSamples, ourSamples } from './samples.ts'
import { factors } from './sddmm.ts'
import { describe } from './spmm.ts'

type Product = 'spmm' | 'sddmm'

/** Who takes part on one device, given what is expected. */
type Enter = (
  on: OurDevice,
  names: ReturnType<typeof fieldOf>,
  label: string,
  side: Contestant['side'],
) => Contestant[]

export async function webgpu(s: Session): Promise<void> {
  const [gpu, cuda] = [await s.webgpu(), await s.cuda().catch(() => undefined)]
  s.say(`WebGPU: ${gpu.device.name}; CUDA: ${cuda?.device.name ?? 'not here'}`)
  for (const source of s.sources()) {
    const A = await source.read()
    s.say(describe(A))
    for (const product of ['spmm', 'sddmm'] as const) {
      const memory: Formats[] = []
      const formatsOf = new Map<OurDevice, Formats>()
      for (const on of [gpu, cuda])
        if (on) {
          const formats = new Formats()
          memory.push(formats)
          formatsOf.set(on, formats)
        }
      try {
        for (const width of s.options.widths) {
          if (s.late()) return
          if (s.has(`webgpu-${product}-naive`, A.name, `${product === 'spmm' ? 'N' : 'K'} = ${width}`))
            continue
          await one(s, product, A, width, gpu, cuda, formatsOf)
        }
      } finally {
        for (const m of memory) await m.free()
      }
    }
  }
}

async function one(
  s: Session,
  product: Product,
  A: Csr,
  width: number,
  gpu: OurDevice,
  cuda: OurDevice | undefined,
  formatsOf: ReadonlyMap<OurDevice, Formats>,
): Promise<void> {
  const { enter, checked, least } = parts(product, A, width, formatsOf)
  const field = fieldOf(`webgpu-${product}`, s.options.schedules, widthValues(width))
  const entries = await compete(
    [
      ...enter(gpu, field, '', 'ours'),
      ...enter(gpu, fieldOf(`naive-${product}`, []), 'naive ', 'naive'),
      ...(cuda
        ? enter(cuda, fieldOf(product, s.options.schedules, widthValues(width)), 'CUDA ', 'peer')
        : []),
    ],
    field.standard,
    s,
  )
  const base: Omit<Case, 'suite' | 'entries'> = {
    data: A.name,
    at: `${product === 'spmm' ? 'N' : 'K'} = ${width}`,
    checked,
    floor: s.ceilings ? floor(s.ceilings, least, 'f32') : null,
    flops: least.flops,
    standard: field.standard,
  }
  if (cuda)
    await s.done({ ...base, suite: `webgpu-${product}`, entries: entries.filter((e) => e.side !== 'naive') })
  const naive = entries
    .filter((e) => e.side !== 'peer')
    .map((e): Entry => (e.side === 'naive' ? { ...e, side: 'peer' } : e))
  await s.done({ ...base, suite: `webgpu-${product}-naive`, entries: naive })
}

function parts(
  product: Product,
  A: Csr,
  width: number,
  formatsOf: ReadonlyMap<OurDevice, Formats>,
): { readonly enter: Enter; readonly checked: string; readonly least: Least } {
  const formats = (on: OurDevice): Formats => formatsOf.get(on) ?? new Formats()
  if (product === 'spmm') {
    const B = normals(A.columns * width)
    const expected = new ExpectedProduct(A, B, width)
    return {
      checked: expected.checked,
      least: leastProduct(A, width),
      enter: (on, field, label, side) =>
        field.candidates.map((c) => ({
          ...ourProduct(on, c, formats(on), A, B, width, expected, `${label}${c.text}`),
          side,
        })),
    }
  }
  const both = factors(A, width)
  const expected = new ExpectedSamples(A, both.X, both.Y, width)
  return {
    checked: expected.checked,
    least: leastSamples(A, width),
    enter: (on, field, label, side) =>
      field.candidates.map((c) => ({
        ...ourSamples(on, c, formats(on), new Map(), A, both, expected, `${label}${c.text}`),
        side,
      })),
  }
}
