// One client of JavaScript, as its users write it, for the comparison in this folder.
//
//   node clients.mjs NAME
//
// It is commanded by lines of JSON on its input and answers each by one on its output:
//
//   {"do": "open", "urls": [...]}                    makes the client
//   {"do": "pass", "callers": 64, "calls": 40}       what a call took: {"micros", "cpuMicros"}
//   {"do": "calls", "calls": 5, "longest": 5000}     one after the other: {"took": [ms], "failed"}
//   {"do": "logs"}                                   a large answer: {"ms", "peak"} in bytes
//
// What goes wrong beside a call is {"fault": "..."}.
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const filter = { fromBlock: "0x13f0000", toBlock: "0x13fffff" };

// Each gives a function that asks for the block number, or something as small, and one that asks for logs. Nothing
// is cached, so that every call is one.
const clients = {
  "fetch of Node": async (urls) => {
    const send = async (url, body) => {
      const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
      if (!answer.ok) throw new Error(`HTTP status ${answer.status}`);
      const { result, error } = await answer.json();
      if (error) throw new Error(error.message);
      return result;
    };
    const ask = async (method, params) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      let failed;
      for (const url of urls) {
        try {
          return await send(url, body);
        } catch (error) {
          failed = error;
        }
      }
      throw failed;
    };
    return { block: () => ask("eth_blockNumber", []), logs: () => ask("eth_getLogs", [filter]) };
  },
  "viem http": async ([url]) => {
    const { createClient, http } = await import("viem");
    return ofViem(createClient({ transport: http(url, { maxResponseBodySize: false }) }));
  },
  "viem fallback": async (urls) => {
    const { createClient, fallback, http } = await import("viem");
    return ofViem(createClient({ transport: fallback(urls.map((url) => http(url))) }));
  },
  "ethers JsonRpcProvider": ([url]) => ofEthers(url, {}),
  "ethers, no batches": ([url]) => ofEthers(url, { batchMaxCount: 1 }),
  "ethers FallbackProvider": (urls) => ofFallback(urls, {}),
  "ethers Fallback, quorum 1": (urls) => ofFallback(urls, { quorum: 1 }),
};

function ofViem(client) {
  return {
    block: () => client.request({ method: "eth_blockNumber" }),
    logs: () => client.request({ method: "eth_getLogs", params: [filter] }),
  };
}

// chain is the one that the endpoints have: they answer everything by the same number.
const chain = 0x13f2a5b;

async function ofEthers(url, options) {
  const { JsonRpcProvider, Network } = await import("ethers");
  const network = Network.from(chain);
  const provider = new JsonRpcProvider(url, network, { staticNetwork: network, ...options });
  return { block: () => provider.send("eth_blockNumber", []), logs: () => provider.send("eth_getLogs", [filter]) };
}

async function ofFallback(urls, options) {
  const { FallbackProvider, JsonRpcProvider, Network } = await import("ethers");
  const network = Network.from(chain);
  const uncached = { cacheTimeout: -1 };
  const providers = urls.map((url, i) => ({
    provider: new JsonRpcProvider(url, network, { staticNetwork: network, batchMaxCount: 1, ...uncached }),
    priority: i + 1, // in order, as the others
  }));
  const provider = new FallbackProvider(providers, network, { ...uncached, ...options });
  // Not for the block number: where one of the answers that it draws that from is an error, the call fails.
  return { block: () => provider.getBalance("0x" + "11".repeat(20)), logs: () => provider.getLogs(filter) };
}

let client;

async function obey({ do: what, urls, callers, calls, longest }) {
  switch (what) {
    case "open":
      client = await clients[process.argv[2]](urls);
      return {};
    case "pass": {
      const cpu = process.cpuUsage();
      const began = performance.now();
      await Promise.all(Array.from({ length: callers }, async () => {
        for (let i = 0; i < calls; i++) await client.block();
      }));
      const took = performance.now() - began;
      const { user, system } = process.cpuUsage(cpu);
      return { micros: (took * 1000) / (callers * calls), cpuMicros: (user + system) / (callers * calls) };
    }
    case "calls": {
      const took = [];
      let failed = 0;
      for (let i = 0; i < calls; i++) {
        const began = performance.now();
        failed += await bounded(client.block(), longest) ? 0 : 1;
        took.push(performance.now() - began);
      }
      return { took, failed };
    }
    case "logs": {
      globalThis.gc?.();
      const base = memory("VmRSS");
      try {
        writeFileSync("/proc/self/clear_refs", "5"); // sets the mark to what is in use
      } catch {} // there is none
      const began = performance.now();
      const logs = await client.logs();
      const ms = performance.now() - began;
      if (!(logs.length > 1000)) throw new Error(`${logs.length} logs`);
      return { ms, peak: Math.max(0, memory("VmHWM") - base) };
    }
  }
  throw new Error(`nobody knows what ${what} is`);
}

// bounded tells whether a call ends well in so many ms.
async function bounded(call, ms) {
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, ms, false); });
  const well = await Promise.race([call.then(() => true, () => false), late]);
  clearTimeout(timer);
  return well;
}

// memory gives one of Linux's figures about this process in bytes, 0 elsewhere.
function memory(field) {
  try {
    return 1024 * Number(new RegExp(`^${field}:\\s*(\\d+) kB`, "m").exec(readFileSync("/proc/self/status", "utf8"))[1]);
  } catch {
    return 0;
  }
}

process.on("unhandledRejection", () => {}); // of a provider's own retries, beside its calls
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = await obey(JSON.parse(line));
  } catch (error) {
    answer = { fault: String(error?.message ?? error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
process.exit(0);
