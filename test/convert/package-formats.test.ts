/** What devices convert is what the host converts, array for array, for every format of the package. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { convertTensor } from '../../src/storage/entries/stored-parts.ts'
import { runs, sample } from '../support/cases.ts'
import {
  arraysOf,
  givenFor,
  instanceOf,
  packageFormats,
  STANDARD,
  tensorFor,
  title,
} from '../support/packaged-schedules.ts'
import { DEVICES, opened } from './devices.ts'

let formats: ReadonlyMap<string, AnyFormat>
beforeAll(async () => {
  formats = await packageFormats()
})

const formatOf = (name: string): AnyFormat => {
  const f = formats.get(name)
  if (!f) throw new Error(`no format ${name}`)
  return f
}

const ON_WEBGPU = new Set(['dcsc', 'sell', 'sr_bcrs', 'bitmap_blocks'])

describe.each(DEVICES)('on $name', ({ kind, name, open }) => {
  const on = opened(open)

  // Every kernel is compiled: SwiftShader takes minutes for all formats.
  const tried =
    kind === 'cpu'
      ? sample(STANDARD, 10)
      : sample(
          STANDARD.filter((s) => ON_WEBGPU.has(s.name)),
          2,
        )
  test.each(tried.map((s) => [title(s), s] as const))(
    '%s: equal arrays to the host, and the round trip',
    async (_, s) => {
      const to = instanceOf(formatOf(s.name), s.args, s.order)
      const plan = conversionPlan(on.device, to)
      const rowsOf = formatOf((s.order ?? 2) === 2 ? 'csr' : 'csf')
      const back = conversionPlan(on.device, instanceOf(rowsOf, [], s.order))
      await fc.assert(
        fc.asyncProperty(tensorFor(s), async (t) => {
          const given = givenFor(t.shape, s.given?.(t.shape))
          const from = await uploadResident(on.device, t)
          const made = await plan.run(from, given)
          expect(arraysOf(await made.download())).toEqual(arraysOf(convertTensor(t, to, given)))
          const rows = await back.run(made, givenFor(t.shape))
          expect(arraysOf(await rows.download())).toEqual(
            arraysOf(convertTensor(t, rows.instance, givenFor(t.shape))),
          )
          for (const r of [from, made, rows]) r.free()
        }),
        { numRuns: runs(kind === 'webgpu' ? 2 : name === 'cpu' ? 6 : 3) },
      )
    },
  )
})
