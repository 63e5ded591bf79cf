// Runs viem, ethers and web3.js against a gateway for a while, each as its users write
// it: nothing is different but the URL. Every answer is compared with what the node
// says directly, or with what is known.
//
//   node clients.mjs GATEWAY NODE SECONDS
//
// GATEWAY serves the same chain under 31337, eip155:31337 and anvil, a ring each; NODE
// is the anvil behind it. Prints a line a client; the exit status is 1 where an answer
// was wrong or missing.
import { readFile } from "node:fs/promises";
import { createPublicClient, createWalletClient, http, parseEther, BaseError, ContractFunctionRevertedError } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { JsonRpcProvider, Wallet, Contract, isCallException, parseEther as ether } from "ethers";
import { Web3 } from "web3";

const [gateway, node, seconds] = process.argv.slice(2);
const deadline = Date.now() + Number(seconds) * 1000;
const leastRounds = 2;

// Accounts that anvil funds.
const keys = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
];

// A contract that answers 42 to everything, and logs it under a topic.
const topic = "0x" + "ab".repeat(32);
const answers42 = deployed("602a6000527f" + topic.slice(2) + "60206000a160206000f3");
// A contract that reverts with Error("no money").
const word = (hex) => hex.padStart(64, "0");
const reverts = deployed("6064600c60003960646000fd" + "08c379a0" + word("20") + word("8") + Buffer.from("no money").toString("hex").padEnd(64, "0"));
const abi = [{ type: "function", name: "answer", stateMutability: "view", inputs: [], outputs: [{ type: "uint256" }] }];

// deployed gives the code that deploys a runtime code.
function deployed(runtime) {
  const length = (runtime.length / 2).toString(16).padStart(2, "0");
  return "0x60" + length + "80600b6000396000f3" + runtime;
}

// address gives one that nobody has used.
const address = (client, n) => "0x" + "c0ffee" + client + n.toString(16).padStart(33, "0");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function raw(url, body) {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return { status: answer.status, text: await answer.text() };
}
async function direct(method, ...params) {
  const { text } = await raw(node, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  return JSON.parse(text).result;
}

// Tally counts the answers of one client.
class Tally {
  constructor(name, version) {
    Object.assign(this, { name, version, right: 0, wrong: [] });
  }
  is(what, got, want) {
    const text = (v) => JSON.stringify(v, (_, x) => typeof x === "bigint" ? String(x) : x);
    if (text(got) === text(want)) this.right++;
    else this.wrong.push(`${what}: got ${text(got)}, want ${text(want)}`);
  }
  // A client's round; what it throws is an answer that's missing.
  async round(run) {
    for (let n = 0; n < leastRounds || Date.now() < deadline; n++) {
      try {
        await run(n);
      } catch (error) {
        this.wrong.push(`round ${n}: ${error?.stack ?? error}`);
        if (this.wrong.length > 20) return;
      }
    }
  }
  toString() {
    const verdict = this.wrong.length ? `${this.wrong.length} WRONG OR MISSING` : "all right";
    return `${this.name.padEnd(9)} ${this.version.padEnd(8)} ${String(this.right).padStart(6)} answers, ${verdict}`;
  }
}

async function viem(tally) {
  const url = gateway + "/31337", account = privateKeyToAccount(keys[0]);
  const client = createPublicClient({ chain: foundry, transport: http(url), pollingInterval: 200 });
  const batching = createPublicClient({ chain: foundry, transport: http(url, { batch: true }) });
  const wallet = createWalletClient({ account, chain: foundry, transport: http(url) });
  const deploy = async (bytecode) => (await client.waitForTransactionReceipt({ hash: await wallet.deployContract({ abi, bytecode }) })).contractAddress;
  const good = await deploy(answers42), bad = await deploy(reverts);
  await tally.round(async (n) => {
    tally.is("chainId", await client.getChainId(), 31337);
    const height = await client.getBlockNumber();
    const block = await client.getBlock({ blockNumber: height });
    tally.is("block", block.hash, (await direct("eth_getBlockByNumber", "0x" + height.toString(16), false)).hash);
    tally.is("readContract", await client.readContract({ address: good, abi, functionName: "answer" }), 42n);
    try {
      await client.readContract({ address: bad, abi, functionName: "answer" });
      tally.is("revert", "an answer", "a revert");
    } catch (error) {
      const cause = error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionRevertedError);
      tally.is("revert", cause?.reason, "no money");
    }
    const balances = await Promise.all(Array.from({ length: 12 }, () => batching.getBalance({ address: account.address, blockNumber: height })));
    const balance = BigInt(await direct("eth_getBalance", account.address, "0x" + height.toString(16)));
    for (const each of balances) tally.is("batched balance", each, balance);
    if (n % 4 === 0) {
      const to = address(1, n);
      const receipt = await client.waitForTransactionReceipt({ hash: await wallet.sendTransaction({ to, value: parseEther("0.5") }) });
      tally.is("receipt", receipt.status, "success");
      tally.is("balance", await client.getBalance({ address: to }), parseEther("0.5"));
      const called = await client.waitForTransactionReceipt({ hash: await wallet.sendTransaction({ to: good }) });
      const logs = await client.getLogs({ address: good, fromBlock: called.blockNumber, toBlock: called.blockNumber });
      tally.is("log", logs.map((log) => log.topics[0]), [topic]);
    }
  });
}

async function ethers(tally) {
  const provider = new JsonRpcProvider(gateway + "/eip155:31337", undefined, { pollingInterval: 200 });
  const wallet = new Wallet(keys[1], provider);
  const deploy = async (data) => (await (await wallet.sendTransaction({ data })).wait()).contractAddress;
  const good = new Contract(await deploy(answers42), abi, provider), bad = new Contract(await deploy(reverts), abi, provider);
  await tally.round(async (n) => {
    tally.is("network", (await provider.getNetwork()).chainId, 31337n);
    const height = await provider.getBlockNumber();
    const block = await provider.getBlock(height);
    tally.is("block", block.hash, (await direct("eth_getBlockByNumber", "0x" + height.toString(16), false)).hash);
    tally.is("call", await good.answer(), 42n);
    try {
      await bad.answer();
      tally.is("revert", "an answer", "a revert");
    } catch (error) {
      tally.is("revert", isCallException(error) && error.reason, "no money");
    }
    // ethers makes a batch of what is asked at the same time.
    const balances = await Promise.all(Array.from({ length: 12 }, () => provider.getBalance(wallet.address, height)));
    const balance = BigInt(await direct("eth_getBalance", wallet.address, "0x" + height.toString(16)));
    for (const each of balances) tally.is("batched balance", each, balance);
    if (n % 4 === 0) {
      const to = address(2, n);
      const receipt = await (await wallet.sendTransaction({ to, value: ether("0.5") })).wait();
      tally.is("receipt", receipt.status, 1);
      tally.is("balance", await provider.getBalance(to), ether("0.5"));
      const called = await (await wallet.sendTransaction({ to: good.target })).wait();
      const logs = await provider.getLogs({ address: good.target, fromBlock: called.blockNumber, toBlock: called.blockNumber });
      tally.is("log", logs.map((log) => log.topics[0]), [topic]);
    }
  });
  provider.destroy();
}

async function web3js(tally) {
  const web3 = new Web3(gateway + "/anvil"), account = web3.eth.accounts.wallet.add(keys[2])[0];
  const deploy = async (data) => (await web3.eth.sendTransaction({ from: account.address, data, gas: 300000 })).contractAddress;
  const good = await deploy(answers42), bad = await deploy(reverts);
  const answer = (address) => new web3.eth.Contract(abi, address).methods.answer().call();
  await tally.round(async (n) => {
    tally.is("chainId", await web3.eth.getChainId(), 31337n);
    const height = await web3.eth.getBlockNumber();
    const block = await web3.eth.getBlock(height);
    tally.is("block", block.hash, (await direct("eth_getBlockByNumber", "0x" + height.toString(16), false)).hash);
    tally.is("call", await answer(good), 42n);
    try {
      await answer(bad);
      tally.is("revert", "an answer", "a revert");
    } catch (error) {
      tally.is("revert", String(error.cause?.message ?? error.innerError?.message ?? error.message).includes("no money"), true);
    }
    const batch = new web3.BatchRequest();
    const at = "0x" + height.toString(16);
    for (let i = 1; i <= 12; i++) batch.add({ jsonrpc: "2.0", id: i, method: "eth_getBalance", params: [account.address, at] }).catch(() => {});
    const balance = await direct("eth_getBalance", account.address, at);
    for (const each of await batch.execute()) tally.is("batched balance", each.result, balance);
    if (n % 4 === 0) {
      const to = address(3, n);
      const receipt = await web3.eth.sendTransaction({ from: account.address, to, value: web3.utils.toWei("0.5", "ether"), gas: 21000 });
      tally.is("receipt", receipt.status, 1n);
      tally.is("balance", await web3.eth.getBalance(to), BigInt(web3.utils.toWei("0.5", "ether")));
      const called = await web3.eth.sendTransaction({ from: account.address, to: good, gas: 100000 });
      const logs = await web3.eth.getPastLogs({ address: good, fromBlock: called.blockNumber, toBlock: called.blockNumber });
      tally.is("log", logs.map((log) => log.topics[0]), [topic]);
    }
  });
}

// plain sends requests without a library: the answer is the node's, byte for byte.
async function plain(tally) {
  await tally.round(async (n) => {
    for (const [method, ...params] of [["eth_getBlockByNumber", "0x0", true], ["eth_getBlockTransactionCountByNumber", "0x0"], ["eth_getCode", "0x" + "0".repeat(40), "0x0"], ["web3_clientVersion"]]) {
      const request = JSON.stringify({ jsonrpc: "2.0", id: `${n}-${method}`, method, params });
      const [through, directly] = await Promise.all([raw(gateway + "/31337", request), raw(node, request)]);
      tally.is(method, [through.status, JSON.parse(through.text)], [directly.status, JSON.parse(directly.text)]);
      const result = (text) => text.slice(text.indexOf('"result":'));
      tally.is(method + ", bytes", result(through.text), result(directly.text));
    }
    tally.is("unknown method", await unknownMethod(), [200, -32601]);
    await pause(25); // the others want some of the machine, too
  });
}

// unknownMethod asks for what no RPC serves, as all of them have said before.
async function unknownMethod() {
  const { status, text } = await raw(gateway + "/31337", '{"jsonrpc":"2.0","id":1,"method":"eth_noSuchMethod","params":[]}');
  return [status, JSON.parse(text).error?.code];
}
async function version(name) {
  return JSON.parse(await readFile(new URL(`./node_modules/${name}/package.json`, import.meta.url))).version;
}

const clients = [
  [new Tally("viem", await version("viem")), viem],
  [new Tally("ethers", await version("ethers")), ethers],
  [new Tally("web3.js", await version("web3")), web3js],
  [new Tally("fetch", process.versions.node), plain],
];
await Promise.all(clients.map(([tally, run]) => run(tally).catch((error) => tally.wrong.push(`it broke off: ${error?.stack ?? error}`))));
let wrong = 0, right = 0;
for (const [tally] of clients) {
  console.log(String(tally));
  for (const line of tally.wrong.slice(0, 5)) console.log("    " + line);
  wrong += tally.wrong.length;
  right += tally.right;
}
console.log(`clients: ${right} answers right, ${wrong} wrong or missing`);
process.exit(wrong ? 1 : 0);
