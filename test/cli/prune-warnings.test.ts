/** `spt prune` warns about layers that next to nothing is left of, and names what to type. */
import { spawnSync } from 'node:child_process'
import { afterAll, expect, test } from 'vitest'
import { sparseLayerWarnings } from '../../src/cli/commands/prune.ts'
import { densePart, safetensorsChunks, writeFile } from '../../src/io/index.ts'
import { matches } from '../../src/prune/options.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

test('a layer with smaller weights is reported', async () => {
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
    "warning: layer small keeps 1 of 6,144 elements, less than 5.0 %\n  = hint: --limit 'small=0.95' or --exclude 'small'\n",
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

test.each(["it's", 'a*', 'b?', 'c\\', 'd=1', 'e\tf', '$HOME `x`'])(
  'the hint for layer %j works when typed, and matches no other layer',
  async (name) => {
    const globs: string[] = []
    const layers = [{ name, rows: 4, cols: 8, kept: 0 }]
    for (const text of sparseLayerWarnings({ layers, sparseLayers: [name], warnBelow: 0.05 } as never)) {
      const { stdout } = spawnSync('sh', [
        '-c',
        `printf '%s\\0' ${text
          .match(/hint: (.*) or (.*)\n/)!
          .slice(1)
          .join(' ')}`,
      ])
      const [, limit, , exclude] = stdout.toString().split('\0')
      expect(limit).toBe(`${exclude}=0.95`)
      globs.push(exclude!)
    }
    expect(globs.map((g) => matches(g, name))).toEqual([true])
    for (const other of ['its', 'a1', 'bc', 'c', 'c\\\\', `${name}1`])
      expect(matches(globs[0]!, other)).toBe(false)
  },
)
