/** The same operations on WebGPU: against naive kernels there, and against our CUDA on the same GPU. */
import { type Field, fieldOf, widthValues } from '../candidates.ts'
import { type Case, type Contestant, compete, type Entry } from '../case.ts'
import { floor } from '../ceilings.ts'
import { Formats } from '../formats.ts'
import { type Csr, describe } from '../matrix.ts'
import type { OurDevice } from '../ours.ts'
import type { Session } from '../session.ts'
import type { Operation } from './matrices.ts'
import { products } from './products.ts'
import { samples } from './samples.ts'
import { vectors } from './vectors.ts'

/** Fields of our CUDA where not all that its own suite times is needed. */
const AGAINST: Readonly<Record<string, string>> = { spmv: 'cuda-spmv' }

/** A device with what has been built there of one matrix. */
interface Place {
  readonly on: OurDevice
  readonly formats: Formats
}

export async function webgpu(s: Session): Promise<void> {
  const [gpu, cuda] = [await s.webgpu(), await s.cuda().catch(() => undefined)]
  s.say(`WebGPU: ${gpu.device.name}; CUDA: ${cuda?.device.name ?? 'not available'}`)
  for await (const A of s.matrices()) {
    s.say(describe(A))
    for (const operation of [products, samples, vectors]) {
      const here: Place = { on: gpu, formats: new Formats() }
      const there: Place | undefined = cuda && { on: cuda, formats: new Formats() }
      try {
        for (const width of operation.widths ?? s.options.widths) {
          if (s.late()) return
          if (s.has(`webgpu-${operation.name}-naive`, A.name, `${operation.letter} = ${width}`)) continue
          await one(s, operation, A, width, here, there)
        }
      } finally {
        await here.formats.free()
        await there?.formats.free()
      }
    }
  }
}

async function one(
  s: Session,
  { name, letter, of }: Operation,
  A: Csr,
  width: number,
  here: Place,
  there: Place | undefined,
): Promise<void> {
  const operands = of(A, width)
  const enter = ({ on, formats }: Place, field: Field, label: string, side: Contestant['side']) =>
    field.candidates.map((c) => ({ ...operands.ours(on, c, formats, `${label}${c.text}`), side }))
  const field = fieldOf(`webgpu-${name}`, s.options.schedules, widthValues(width))
  const entries = await compete(
    [
      ...enter(here, field, '', 'ours'),
      ...enter(here, fieldOf(`naive-${name}`, []), 'naive ', 'naive'),
      ...(there
        ? enter(
            there,
            fieldOf(AGAINST[name] ?? name, s.options.schedules, widthValues(width)),
            'CUDA ',
            'peer',
          )
        : []),
    ],
    field.standard,
    s,
  )
  const { least, checked } = operands
  const base: Omit<Case, 'suite' | 'entries'> = {
    data: A.name,
    at: `${letter} = ${width}`,
    checked,
    floor: s.ceilings ? floor(s.ceilings, least, 'f32') : null,
    flops: least.flops,
    standard: field.standard,
  }
  if (there)
    await s.done({ ...base, suite: `webgpu-${name}`, entries: entries.filter((e) => e.side !== 'naive') })
  const naive = entries
    .filter((e) => e.side !== 'peer')
    .map((e): Entry => (e.side === 'naive' ? { ...e, side: 'peer' } : e))
  await s.done({ ...base, suite: `webgpu-${name}-naive`, entries: naive })
}
