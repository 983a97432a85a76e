/** One network: trained, then pruned in every pattern from where it stood, stage after stage, trained on after each. */
import {
  blockWise,
  elementWise,
  layersFromValues,
  nOfM,
  pruneInStages,
  tileElementWise,
  tileWise,
  unionMasks,
} from 'sparsetile/prune'

/** By the names that results have; `dense`: nothing is pruned, and it is trained as long as the others. */
export const PATTERNS = {
  dense: null,
  ew: elementWise(),
  'tw 32': tileWise({ granularity: 32 }),
  'tw 64': tileWise({ granularity: 64 }),
  'tw 128': tileWise({ granularity: 128 }),
  'tew 32 1%': tileElementWise({ granularity: 32, delta: 0.01 }),
  'tew 32 5%': tileElementWise({ granularity: 32, delta: 0.05 }),
  'bw 32': blockWise({ rows: 32, cols: 32 }),
  '2:4': nOfM({ n: 2, m: 4 }),
}

/** Those of the stages that a pattern can have. */
function stagesOf(name, stages) {
  if (name === '2:4') return [0.5]
  const delta = /(\d+)%$/.exec(name)
  return stages.filter((s) => s < 1 - Number(delta?.[1] ?? 0) / 100)
}

/**
 * Results of one network, a row for each pattern: with every sparsity the share of the norm that is kept, and the accuracy before and after
 * training on.
 * @param task of `network.mjs`
 * @param what `limit`: the sparsity that no layer exceeds
 */
export async function runs(task, seed, { patterns, stages, first, between, limit = 1 }) {
  const network = await task.network(seed)
  await network.train(first)
  const trained = { state: await network.state(), accuracy: await network.accuracy() }
  const out = []
  for (const name of patterns) {
    await network.restore(trained.state, 1000 + seed)
    const figures = { sparsity: [], reached: [], norm: [], pruned: [], accuracy: [] }
    const tuned = async (sparsity, report) => {
      figures.sparsity.push(sparsity)
      figures.reached.push(short(report?.sparsity ?? 0))
      figures.norm.push(short(report?.retainedNorm ?? 1))
      figures.pruned.push(short(await network.accuracy()))
      await network.train(between)
      figures.accuracy.push(short(await network.accuracy()))
    }
    if (PATTERNS[name] === null) for (const s of stages) await tuned(s)
    else await pruned(network, PATTERNS[name], stagesOf(name, stages), tuned, limit)
    out.push({ pattern: name, seed, trained: trained.accuracy, ...figures })
  }
  return out
}

async function pruned(network, pattern, stages, tuned, limit) {
  const stage = async (now) => {
    await network.prune(unionMasks(now))
    await tuned(now.sparsity, now.report)
    return layersFromValues(await network.layers())
  }
  const last = await pruneInStages(layersFromValues(await network.layers()), {
    pattern,
    stages,
    between: stage,
    limits: { '*': limit },
  })
  await stage({ ...last, report: last.reports.at(-1), sparsity: stages.at(-1) })
}

const short = (x) => Number(x.toFixed(4))
