/** `spt prune` warns about layers that next to nothing is left of, and names what to type. */
import { afterAll, expect, test } from 'vitest'
import { densePart, safetensorsChunks, writeFile } from '../../src/io/index.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

test('a layer of smaller weights', async () => {
  const part = (name: string, scale: number) =>
    densePart(name, {
      kind: 'dense',
      shape: [96, 64],
      values: Float32Array.from({ length: 96 * 64 }, (_, i) => scale * (1 + (i % 13))),
      dtype: 'f32',
    })
  const model = folder.at('m.safetensors')
  await writeFile(model, safetensorsChunks([part('large', 1), part('small', 1e-3)]))
  const pruned = (...more: string[]) =>
    spt(['prune', model, '--pattern', 'ew', '--sparsity', '0.5', '--json', ...more])
  const { code, err, out } = await pruned()
  expect([code, err]).toEqual([
    0,
    "warning: layer small keeps 0 of 6,144 elements, less than 5.0 %\n  = hint: --limit 'small=0.95' or --exclude 'small'\n",
  ])
  expect(JSON.parse(out)).toMatchObject({ sparseLayers: ['small'], warnBelow: 0.05 })
  // What is typed helps.
  for (const more of [
    ['--limit', 'small=0.95'],
    ['--exclude', 'small'],
    ['--warn-below', '0'],
  ])
    expect((await pruned(...more)).err).toBe('')
  expect(await pruned('--warn-below', '1.5')).toMatchObject({ code: 2 })
})
