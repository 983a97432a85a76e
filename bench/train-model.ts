/**
 * Trains the cost model of a kind of device on what was measured of generated families, schedules by hand and points of
 * sketches, and writes it as the package ships
 * it: the same from the same records.
 *
 * ```
 * node dist/bench/train-model.js [--device cuda|webgpu] [--measured FILE.jsonl.gz,…] [--out data/models/KIND.json]
 * ```
 */
import { writeFileSync } from 'node:fs'
import { isDrawn, measured, samplesOf } from './model/dataset.ts'
import { trained } from './model/learning.ts'
import { drawnPoints } from './model/sketch-points.ts'
import { option } from './support.ts'

const records = measured().filter(isDrawn)
const samples = await samplesOf(records, '.', (text) => console.error(text))
const { device, chip } = records[0]!
const points = await drawnPoints(device, chip)
const model = trained([...samples, ...points])
const out = option('out') ?? `data/models/${device}.json`
writeFileSync(out, `${JSON.stringify(model)}\n`)
const { roots, feature } = model.trees
console.log(
  `${out}: ${samples.length} samples, ${points.length} of sketches, ${roots.length} trees, ${feature.length} nodes`,
)
console.log(model.coefficients)
