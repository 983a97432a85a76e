/**
 * `examples/prune-in-stages.py`: what a loop of PyTorch does with `spt prune`, with stubs of torch and safetensors
 * (`stubs/`), so that the protocol of files is tried and no training. Needs `npm run build`; skipped without python3.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { fileSource, maskPart, masksOf, openWeights } from '../../src/io/index.ts'
import type { Mask, Pattern } from '../../src/prune.ts'
import { layersFromValues, prune, tileElementWise, tileWise, unionMasks } from '../../src/prune.ts'
import { sample } from '../support/cases.ts'
import { Folder } from './support.ts'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const folder = new Folder()
afterAll(() => folder.remove())

const hasPython = spawnSync('python3', ['--version']).status === 0
const stages = [25, 50, 75]

const layersIn = async (path: string) => {
  const weights = await openWeights(path)
  const values = weights.layers.map(async (l) => ({ ...l, weights: await weights.weights(l.name) }))
  return { weights, list: await Promise.all(values) }
}
/** Whether all that is pruned is 0, and nothing else: what is trained is 0 by chance alone, and drawn alike each time. */
const isHeld = (values: Float32Array, kept: Mask): boolean =>
  values.every((v, i) => (v !== 0) === (kept[i] === 1))

describe.skipIf(!hasPython)(hasPython ? 'with python3' : 'skipped: there is no python3', () => {
  const patterns: readonly (readonly [string, Pattern])[] = [
    ['tw --granularity 8', tileWise({ granularity: 8 })],
    ['tew --granularity 4 --delta 0.05', tileElementWise({ granularity: 4, delta: 0.05 })],
  ]
  test.each(sample(patterns, 2))(
    'each stage prunes the weights trained under the previous mask: %s',
    async (text, pattern) => {
      const out = folder.at(pattern.name)
      const limited = ['--limit-at', '50', '0.*=0.3', '--limit', '*=0.9']
      const python = ['--out', out, '--steps', '2', ...limited, '--pattern', ...text.split(' ')]
      const main = here('../../dist/lib/spt.js')
      const log = folder.at(`${pattern.name}.log`)
      const wrapper = folder.file(
        'spt.mjs',
        `import { appendFileSync } from 'node:fs'
      import { spawnSync } from 'node:child_process'
      const [log, ...argv] = process.argv.slice(2)
      appendFileSync(log, JSON.stringify(argv) + '\\n')
      process.exit(spawnSync(process.execPath, [${JSON.stringify(main)}, ...argv], { stdio: 'inherit' }).status)`,
      )
      const command = `'${process.execPath}' '${wrapper}' '${log}'`
      const path = [here('stubs'), process.env.PYTHONPATH].filter(Boolean).join(delimiter)
      const ran = spawnSync(
        'python3',
        [here('../../examples/prune-in-stages.py'), '--spt', command, ...python],
        {
          encoding: 'utf8',
          env: { ...process.env, PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: '1' },
        },
      )
      expect([ran.status, ran.stderr]).toEqual([0, ''])
      expect(readdirSync(out).toSorted()).toEqual(
        [...stages.flatMap((s) => [String(s), `trained-${s}.safetensors`]), 'pruned.safetensors'].toSorted(),
      )
      const calls = readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((l) => JSON.parse(l) as string[])
      expect(
        calls.map((c) => [c.find((a) => a.endsWith('.safetensors')), c[c.indexOf('--after') + 1]]),
      ).toEqual([
        [`${out}/trained-25.safetensors`, 'prune'],
        [`${out}/trained-50.safetensors`, `${out}/25`],
        [`${out}/trained-75.safetensors`, `${out}/50`],
      ])
      let after: readonly Mask[] | undefined
      for (const s of stages) {
        const { weights, list } = await layersIn(`${out}/trained-${s}.safetensors`)
        // Training changed everything, and what the stage before pruned is 0 still.
        for (const [k, l] of list.entries()) if (after) expect(isHeld(l.weights, after[k]!)).toBe(true)
        const limits = { '*': 0.9, ...(s === 50 && { '0.*': 0.3 }) }
        const made = await prune(layersFromValues(list), {
          pattern,
          sparsity: s / 100,
          limits,
          ...(after && { previousMasks: after }),
        })
        for (const [name, masks] of [
          ['masks', made.masks],
          ['rest', made.rest],
        ] as const) {
          if (!masks) continue
          const file = await masksOf(await fileSource(`${out}/${s}/${name}.safetensors`), weights)
          expect(list.map((l) => file.get(l.name))).toEqual(masks)
          expect(list.map((l, k) => maskPart(weights, l, masks[k]!).type)).toEqual(list.map(() => 'BOOL'))
        }
        after = unionMasks(made)
      }
      const { list } = await layersIn(`${out}/pruned.safetensors`)
      expect(list.map((l, k) => isHeld(l.weights, after![k]!))).toEqual([true, true])
    },
  )
})
