// What the documentation of Node's etcd3 shows, checked on a server: "passed NAME" or "failed NAME" for each.
const assert = require("node:assert/strict");
const { once } = require("node:events");
const { Etcd3, EtcdLockFailedError, EtcdPermissionDeniedError, Role, Range } = require("etcd3");

const hosts = process.argv.slice(2);
const client = new Etcd3({ hosts });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const checks = {
  async kv() {
    await client.put("kv/a").value("1");
    assert.equal(await client.get("kv/a").string(), "1");
    assert.equal(await client.get("kv/a").number(), 1);
    assert.equal(await client.get("kv/none").string(), null);
    assert.equal((await client.put("kv/a").value("2").getPrevious()).value.toString(), "1");
    assert.equal(await client.get("kv/a").exists(), true);
    assert.equal((await client.delete().key("kv/a")).deleted, "1");
  },
  async ranges() {
    for (const name of ["a", "b", "c"]) await client.put(`ranges/${name}`).value(name);
    assert.deepEqual(await client.getAll().prefix("ranges/").strings(), {
      "ranges/a": "a",
      "ranges/b": "b",
      "ranges/c": "c",
    });
    assert.deepEqual(await client.getAll().prefix("ranges/").sort("Key", "Descend").limit(2).keys(), [
      "ranges/c",
      "ranges/b",
    ]);
    assert.equal(await client.getAll().prefix("ranges/").count(), 3);
    assert.equal((await client.delete().inRange(new Range("ranges/a", "ranges/c"))).deleted, "2");
    assert.deepEqual(await client.getAll().prefix("ranges/").keys(), ["ranges/c"]);
  },
  async old_revisions() {
    await client.put("old").value("1");
    const before = (await client.get("old").exec()).header.revision;
    await client.put("old").value("2");
    assert.equal(await client.get("old").revision(before).string(), "1");
    await client.kv.compact({ revision: String(Number(before) + 1), physical: true });
    await assert.rejects(client.get("old").revision(before).string(), /compacted/);
  },
  async transactions() {
    const txn = () =>
      client
        .if("txn", "Version", "==", 0)
        .then(client.put("txn").value("1"))
        .else(client.get("txn"))
        .commit();
    assert.equal((await txn()).succeeded, true);
    const second = await txn();
    assert.equal(second.succeeded, false);
    assert.equal(second.responses[0].response_range.kvs[0].value.toString(), "1");
  },
  async software_transactions() {
    await client.put("stm").value(0);
    const add = () =>
      client.stm({ retries: 50 }).transact(async (tx) => {
        await tx.put("stm").value((await tx.get("stm").number()) + 1);
      });
    await Promise.all([add(), add(), add(), add()]);
    assert.equal(await client.get("stm").number(), 4);
  },
  async namespaces() {
    const inside = client.namespace("ns/");
    await inside.put("a").value("1");
    assert.equal(await client.get("ns/a").string(), "1");
    assert.deepEqual(await inside.getAll().strings(), { a: "1" });
    await inside.delete().all();
    assert.equal(await client.get("ns/a").exists(), false);
  },
  async leases() {
    const lease = client.lease(10);
    await lease.put("lease/a").value("1");
    const id = await lease.grant();
    assert.equal((await client.get("lease/a").exec()).kvs[0].lease, id);
    await lease.keepaliveOnce();
    const told = await client.leaseClient.leaseTimeToLive({ ID: id, keys: true });
    assert.equal(told.grantedTTL, "10");
    assert.deepEqual(told.keys.map(String), ["lease/a"]);
    await lease.revoke();
    assert.equal(await client.get("lease/a").exists(), false);
  },
  async leases_that_expire() {
    const lease = client.lease(1, { autoKeepAlive: false });
    await lease.put("expiring").value("1");
    const watcher = await client.watch().key("expiring").create();
    await once(watcher, "delete");
    await watcher.cancel();
    await assert.rejects(lease.keepaliveOnce());
  },
  async locks() {
    const held = await client.lock("lock").ttl(10).acquire();
    await assert.rejects(client.lock("lock").ttl(10).acquire(), EtcdLockFailedError);
    await held.release();
    assert.equal(await client.lock("lock").do(async () => "done"), "done");
  },
  async elections() {
    const election = client.election("election", 10);
    const campaign = election.campaign("first");
    await once(campaign, "elected");
    const observer = await election.observe();
    assert.equal(observer.leader() ?? (await once(observer, "change"))[0], "first");
    const changed = once(observer, "change");
    await campaign.proclaim("second");
    assert.deepEqual(await changed, ["second"]);
    await campaign.resign();
    await observer.cancel();
  },
  async watches() {
    const watcher = await client.watch().prefix("watch/").withPreviousKV().create();
    const events = [];
    watcher.on("put", (kv, previous) => events.push(["put", `${kv.key}`, `${kv.value}`, previous && `${previous.value}`]));
    watcher.on("delete", (kv, previous) => events.push(["delete", `${kv.key}`, "", `${previous.value}`]));
    await client.put("watch/a").value("1");
    await client.put("watch/a").value("2");
    await client.delete().key("watch/a");
    while (events.length < 3) await pause(10);
    const [first, ...rest] = events;
    assert.deepEqual(first.slice(0, 3), ["put", "watch/a", "1"]);
    assert.deepEqual(rest, [
      ["put", "watch/a", "2", "1"],
      ["delete", "watch/a", "", "2"],
    ]);
    await watcher.cancel();
  },
  async watches_of_the_past() {
    await client.put("past").value("1");
    const revision = (await client.get("past").exec()).kvs[0].mod_revision;
    await client.put("past").value("2");
    const watcher = await client.watch().key("past").startRevision(revision).watcher();
    const seen = [];
    watcher.on("put", (kv) => seen.push(kv.value.toString()));
    while (seen.length < 2) await pause(10);
    assert.deepEqual(seen, ["1", "2"]);
    await watcher.cancel();
  },
  async cluster_and_maintenance() {
    const { members } = await client.cluster.memberList({});
    assert.equal(members.length, 1);
    const status = await client.maintenance.status();
    assert.equal(status.leader, members[0].ID);
    assert.match(status.version, /^3\./);
    await client.maintenance.defragment();
    assert.deepEqual((await client.maintenance.alarm({ action: "Get" })).alarms, []);
    assert.notEqual((await client.maintenance.hash()).hash, 0);
  },
  async users() {
    const [role, user, root] = [client.role("reader"), client.user("reader"), client.user("root")];
    await role.create();
    await role.grant({ permission: "Read", range: Range.prefix("users/") });
    assert.deepEqual((await client.getRoles()).map((one) => one.name), ["reader"]);
    await user.create("secret");
    await user.addRole(role);
    await client.role("root").create();
    await root.create("secret");
    await root.addRole("root");
    await client.auth.authEnable();
    const login = (username) => new Etcd3({ hosts, auth: { username, password: "secret" } });
    const [reader, admin] = [login("reader"), login("root")];
    try {
      await admin.put("users/a").value("1");
      assert.equal(await reader.get("users/a").string(), "1");
      await assert.rejects(reader.put("users/a").value("2"), EtcdPermissionDeniedError);
      await assert.rejects(reader.get("other").string(), EtcdPermissionDeniedError);
    } finally {
      await admin.auth.authDisable();
      reader.close();
      admin.close();
    }
    await user.delete();
    await role.delete();
  },
};

async function main() {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await Promise.race([
        check(),
        pause(30_000).then(() => {
          throw new Error("no end after 30 seconds");
        }),
      ]);
      console.log(`passed ${name}`);
    } catch (error) {
      console.log(`failed ${name}`);
      console.error(error);
    }
  }
  process.exit(0);
}

main();
