/** The CUDA texts of all kernels that conversions launch, compiled by nvcc where there is one. Nothing runs. */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { convert } from '../../src/api/resident/resident.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { releaseConversions, uploadResident } from '../../src/storage/engines/device/index.ts'
import { queueOf } from '../../src/storage/engines/device/resident-tensors.ts'
import { TUNINGS } from '../../src/storage/engines/device/tuning.ts'
import { sample } from '../support/cases.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { givenFor, instanceOf, packageFormats, STANDARD, tensorFor } from '../support/packaged-schedules.ts'

/** Between them they need every kind of kernel (of tensors that one seed gives). */
const TRIED = new Set([
  'csc',
  'sell',
  'sr_bcrs',
  'bitmap_blocks',
  'vbr',
  'hyb',
  'masked_rest',
  'top_rest',
  'csf',
])
/** What is worked on as CUDA devices do. */
const IN_TILES = new Set(['csc', 'sr_bcrs', 'hyb'])
const texts: string[] = []

vi.mock('../../src/backends/targets/index.ts', async (original) => {
  const real = await original<typeof import('../../src/backends/targets/index.ts')>()
  return {
    ...real,
    emit: (...[plan, target]: Parameters<typeof real.emit>) => {
      texts.push(...real.emit(plan, 'cuda').map((t) => t.text))
      return real.emit(plan, target)
    },
  }
})

test.skipIf(noNvcc !== null)('nvcc compiles every kernel', async () => {
  const device = createCpuDevice()
  const tuning = { ...queueOf(device).tuning }
  const formats = await packageFormats()
  for (const s of STANDARD.filter((x) => TRIED.has(x.name))) {
    const format = formats.get(s.name)
    if (!format) throw new Error(`no format ${s.name}`)
    const to = instanceOf(format, s.args, s.order)
    if (IN_TILES.has(s.name)) Object.assign(queueOf(device).tuning, TUNINGS.cuda)
    for (const t of fc.sample(tensorFor(s), { numRuns: 2, seed: 1 })) {
      const given = givenFor(t.shape, s.given?.(t.shape))
      const from = await uploadResident(device, t)
      const made = await convert(device, from, to, given)
      const rows = await convert(device, made, to, given)
      for (const r of [from, made, rows]) r.free()
    }
    Object.assign(queueOf(device).tuning, tuning)
  }
  await releaseConversions(device)
  expect(texts.length).toBeGreaterThan(40)
  expect(texts.some((t) => t.includes('x_tile_keys'))).toBe(true)
  const one = sample(texts, 10)
    .map((t, k) => `namespace k${k} {\n${t}\n}`)
    .join('\n')
  expect(compileCuda([one])).toBe('')
})
