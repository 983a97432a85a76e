/**
 * Trains the cost model on what was measured of generated families, and writes it as the package ships it.
 *
 * ```
 * node dist/bench/train-model.js [--measured FILE.jsonl.gz] [--out data/models/cuda.json]
 * ```
 */
import { writeFileSync } from 'node:fs'
import { FEATURE_NAMES } from '../src/search/model/features.ts'
import { isDrawn, samplesOf } from './model/dataset.ts'
import { H100, kept, learned, rowOf } from './model/learning.ts'
import { option } from './support.ts'

const records = kept(option('measured') ?? 'bench/model/measured/h100.jsonl.gz').filter(isDrawn)
const samples = await samplesOf(records, '.', (text) => console.error(text))
const trees = learned(samples.map((s) => rowOf(s, H100)))
const model = { version: 1, chip: records[0]!.chip, features: FEATURE_NAMES, coefficients: H100, trees }
const out = option('out') ?? 'data/models/cuda.json'
writeFileSync(out, `${JSON.stringify(model)}\n`)
console.log(`${out}: ${samples.length} samples, ${trees.roots.length} trees, ${trees.feature.length} nodes`)
