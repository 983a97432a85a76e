import { basename, join } from 'node:path'
import { escaped, escapedLine } from '../../ast/render.ts'
import { type Chunks, masksMetadata, PRUNED, safetensorsChunks } from '../../io/index.ts'
import { NORMS } from '../../prune/scores.ts'
import { drawMasks, type Normalise, type Pruned, type PruneProgress, prune as pruned } from '../../prune.ts'
import type { Call, CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { percent, plainNumbers } from '../figures.ts'
import { type OutFolder, outFolder, writeFolder } from '../prune/folder.ts'
import { checkGiven, withGiven } from '../prune/given.ts'
import { checkNamed, givenMasks, type Model, masksAfter, openModel, partsOf } from '../prune/model.ts'
import { type ChosenPattern, PARAMETER_OPTIONS, PATTERN, PATTERN_NOTE, patternOf } from '../prune/patterns.ts'
import { PREDICT_OPTIONS, type PredictedReport, predicting } from '../prune/predict.ts'
import { human, sparseLayerWarnings } from '../prune/prune-report.ts'

const PICTURE = 'report.svg'
/** All that a folder may have. */
const WRITTEN = [...Object.values(PRUNED), PICTURE]

export const prune: CommandSpec = {
  name: 'prune',
  args: 'WEIGHTS',
  count: [1, 1],
  summary: 'Prune the weights of a model in a pattern that kernels support',
  options: [
    PATTERN,
    ...PARAMETER_OPTIONS,
    {
      flags: '--sparsity <S>',
      about:
        'Sparsity over all layers, such as 0.75; not for nm and vnm, where n and m determine the sparsity',
    },
    {
      flags: '--normalise <N>',
      about:
        'Score of vectors of different lengths: root (root mean square) or length (norm / length) (default: root)',
    },
    {
      flags: '--gradients <FILE>',
      about: 'Gradients of the loss, under the names of the weights: the score is |∂L/∂w · w|, not |w|',
      file: 'read',
    },
    { flags: '--exclude <GLOB>', about: 'Layers that are not pruned, such as *.embeddings.*', repeats: true },
    { flags: '--limit <GLOB=S>', about: 'Maximum sparsity of a layer', repeats: true },
    {
      flags: '--warn-below <SHARE>',
      about: 'Warn about layers with a smaller share of kept elements (default: (1 − S) / 10)',
    },
    {
      flags: '--after <DIR>',
      about: 'Output folder of an earlier call; the weights pruned by that call count as 0',
    },
    {
      flags: '--masks <FILE>',
      about: 'Use these masks (.safetensors); masks that do not follow the pattern are rejected',
      file: 'read',
    },
    { flags: '--transposed', about: 'Layers are [inputs, outputs], as in Conv1D of GPT-2 and in Flax' },
    ...PREDICT_OPTIONS,
    { flags: '--out <DIR>', about: 'Write the results into this folder (default: the report alone)' },
    { flags: '--json', about: 'One JSON object instead of the report' },
  ],
  notes: [
    PATTERN_NOTE,
    `WEIGHTS: .safetensors, the .safetensors.index.json of several, or .npz. Tensors of floats with two dimensions or more are\nlayers; other tensors are copied. The files in DIR are written together or not at all:\n${WRITTEN.join(', ')} (rest: only for tew).`,
  ],
  examples: [
    "spt prune model.safetensors --pattern tw --granularity 128 --sparsity 0.75 --exclude '*embeddings*' --out pruned",
    'spt prune tuned.safetensors --after stage-25 --pattern tew --granularity 128 --delta 0.01 --sparsity 0.5 --out stage-50',
    "spt prune model.npz --pattern bw --rows 32 --cols 32 --sparsity 0.5 --limit 'head*=0.2' --out pruned",
    'spt prune model.safetensors --pattern tw --granularity 128 --masks mine.safetensors --out pruned',
    'spt prune model.safetensors --pattern tw --granularity 128 --sparsity 0.75 --predict kernel.spt --size m=128 --device cpu',
  ],
  async run(call) {
    const chosen = patternOf(call)
    checkGiven(call, chosen)
    const sparsity = call.number('sparsity')
    const warnBelow = call.decimal('warn-below', 0, 1)
    const normalise = call.choice('normalise', Object.keys(NORMS) as Normalise[])
    const options = {
      pattern: chosen.pattern,
      limits: call.numbers('limit', 'S'),
      exclude: call.many('exclude'),
      ...(sparsity !== undefined && { sparsity }),
      ...(normalise && { normalise }),
      ...(warnBelow !== undefined && { warnBelow }),
    }
    const predict = await predicting(call)
    const out = call.one('out')
    const folder = out === undefined ? null : await outFolder(call.command, out, WRITTEN, readBy(call))
    const model = await openModel(call)
    checkNamed(call, model)
    const made = await masksFor(call, model, chosen, options)
    const report = predict ? await predict(made) : made.report
    if (folder) await write(call, folder, model, { ...made, report })
    call.io.progress?.('')
    for (const text of sparseLayerWarnings(made.report)) call.io.err(text)
    call.io.out(
      call.flag('json')
        ? `${escaped(JSON.stringify(folder ? { ...report, out: folder.path } : report, plainNumbers))}\n`
        : `${human(report)}${folder ? `wrote ${escapedLine(folder.path)}\n` : 'nothing is written: --out DIR\n'}`,
    )
    return EXIT.ok
  },
}

const readBy = (call: Call) => [
  ...call.args.map((path) => ({ typed: path, path })),
  ...call.files('read'),
  ...call.many('after').map((path) => ({ typed: `--after ${path}`, path: join(path, PRUNED.masks) })),
]

async function masksFor(
  call: Call,
  model: Model,
  chosen: ChosenPattern,
  options: Omit<Parameters<typeof pruned>[1], 'after' | 'onProgress'>,
): Promise<Pruned> {
  const onProgress = ({ pass, layer, done, of }: PruneProgress): void =>
    call.io.progress?.(`${pass}: ${done} of ${of}, ${escapedLine(layer)}`)
  const given = call.one('masks')
  if (given !== undefined) {
    const { warnBelow } = options
    return withGiven(model.layers, await givenMasks(given, model), chosen, { warnBelow, onProgress })
  }
  const stage = call.one('after')
  const after = stage === undefined ? undefined : await masksAfter(stage, model)
  return pruned(model.layers, { ...options, ...(after && { after }), onProgress })
}

async function write(
  call: Call,
  folder: OutFolder,
  model: Model,
  made: Omit<Pruned, 'report'> & { readonly report: PredictedReport },
): Promise<void> {
  const { report, masks, rest } = made
  const parts = partsOf(model, made)
  const title = `${basename(model.weights.name)} in ${report.pattern}, ${percent(report.sparsity)}`
  const told = new Map([
    ...masksMetadata(model.weights),
    ['pattern', report.pattern],
    ['sparsity', String(report.sparsity)],
  ])
  const text = (of: () => string) => () => [new TextEncoder().encode(of())]
  const files = new Map<string, () => Chunks>([
    ...[...parts].map(
      ([name, list]) =>
        [
          name,
          () => {
            call.io.progress?.(`writing ${name}`)
            return safetensorsChunks(list, name === PRUNED.weights ? model.weights.metadata : told)
          },
        ] as const,
    ),
    [PRUNED.report, text(() => `${JSON.stringify(report, plainNumbers, 2)}\n`)],
    [PICTURE, text(() => drawMasks({ shapes: model.layers.shapes, masks, ...(rest && { rest }) }, title))],
  ])
  await writeFolder(folder, files)
}
