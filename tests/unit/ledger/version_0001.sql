-- A ledger as the first version wrote it, as SQL: what the newest has to read.
PRAGMA application_id = 1952539497;
BEGIN TRANSACTION;
CREATE TABLE answers (
    plan_sha256 TEXT NOT NULL,
    data_version TEXT NOT NULL,
    permit TEXT NOT NULL REFERENCES permits (id),
    sha256 TEXT NOT NULL REFERENCES contents (sha256),
    PRIMARY KEY (plan_sha256, data_version)
) STRICT, WITHOUT ROWID;
INSERT INTO "answers" VALUES('e004ebd5b5532a4b85984a62f8ad48a81aa3460c1ca07701f386135d72cdecf5','1','6-0000000000000000','83331a5e274ed68d54e09fd859e39f92c0e833301485dbef3cfc216f778db5bd');
INSERT INTO "answers" VALUES('ebbb5b332060a3ede7047bd7528883b0a560e729848f9feb8ff742145e909b01','1','10-0000000000000001','b0bf340a7ac508613c9ea1f0c6d43f10c1e0dbff3e7d157c738c87aa3a446804');
CREATE TABLE contents (
    sha256 TEXT PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;
INSERT INTO "contents" VALUES('83331a5e274ed68d54e09fd859e39f92c0e833301485dbef3cfc216f778db5bd',X'616E73776572206F6E65');
INSERT INTO "contents" VALUES('b0bf340a7ac508613c9ea1f0c6d43f10c1e0dbff3e7d157c738c87aa3a446804',X'616E737765722074776F');
CREATE TABLE head (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL
) STRICT;
INSERT INTO "head" VALUES(1,22,'29daab46d6bc4a9a898a5f7a3bb8847657fdcb6d0b348bd0530032f156c7200a',1700000025000000,18);
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    behind_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
INSERT INTO "journal" VALUES(1,1700000000000000,0,'budget-created','{"cap":{"delta":1e-06,"epsilon":3.0,"filter":"zcdp","order":null,"relation":"add-remove"},"per_epoch":false,"scope":"[\"visits\",\"dataset\",\"\"]"}','0000000000000000000000000000000000000000000000000000000000000000','de3a1be7a47803eeefd687021a3b3e134c4aa0bf46c6b2da9d374598c15e28bc');
INSERT INTO "journal" VALUES(2,1700000003000000,0,'cap-created','{"cap":{"delta":1e-07,"epsilon":1.0,"filter":"zcdp","order":null,"relation":"add-remove"},"scope":"[\"visits\",\"analyst\",\"ana\"]"}','de3a1be7a47803eeefd687021a3b3e134c4aa0bf46c6b2da9d374598c15e28bc','175f1acf23c2e4b4b0a69c8b8fc04c5340ca7f964f010a71776ef887342b2c31');
INSERT INTO "journal" VALUES(3,1700000006000000,0,'cap-created','{"cap":{"delta":1e-07,"epsilon":0.5,"filter":"zcdp","order":null,"relation":"add-remove"},"scope":"[\"visits\",\"analyst\",\"bob\"]"}','175f1acf23c2e4b4b0a69c8b8fc04c5340ca7f964f010a71776ef887342b2c31','bfecef7ba320e394dcb47aa62564d3464902f652076439034f8aa7e26217ff63');
INSERT INTO "journal" VALUES(4,1700000009000000,0,'epoch-added','{"cap":{"delta":1e-06,"epsilon":3.0,"filter":"zcdp","order":null,"relation":"add-remove"},"ends":null,"scope":"[\"visits\",\"epoch\",\"2024\"]","starts":null}','bfecef7ba320e394dcb47aa62564d3464902f652076439034f8aa7e26217ff63','c42abac7904ea25c534b69d4ad7882c0c98b0f305e20a45491bedb7f95201f45');
INSERT INTO "journal" VALUES(5,1700000011000000,0,'budget-created','{"cap":{"delta":0.0,"epsilon":1.0,"filter":"pure","order":null,"relation":"add-remove"},"per_epoch":false,"scope":"[\"labs\",\"dataset\",\"\"]"}','c42abac7904ea25c534b69d4ad7882c0c98b0f305e20a45491bedb7f95201f45','ebb799a4da7f7c7afaa69f8e70824e51795268356da0c083cd7da9444dde48f9');
INSERT INTO "journal" VALUES(6,1700000013000000,0,'reserved','{"analysts":["ana"],"charged":{"[\"visits\",\"analyst\",\"ana\"]":[["132922799578491594669078335511855104","0"],["6640607061793436507705210040221696","0"]],"[\"visits\",\"dataset\",\"\"]":[["132922799578491594669078335511855104","0"],["6640607061793436507705210040221696","0"]],"[\"visits\",\"epoch\",\"2024\"]":[["132922799578491594669078335511855104","0"],["6640607061793436507705210040221696","0"]]},"cost":{"delta":0.0,"epsilon":0.1,"rho":0.004995837495788015},"dataset":"visits","epochs":["2024"],"event":{"epsilon":0.1,"kind":"laplace","relation":"add-remove","version":1},"is_plan":false,"key":"k1","permit":"6-0000000000000000","purpose":"by month"}','ebb799a4da7f7c7afaa69f8e70824e51795268356da0c083cd7da9444dde48f9','adc19a9e5c0f9822230966ac27efdb60dfe6364d37830d13e4ce023486c89535');
INSERT INTO "journal" VALUES(7,1700000014000000,0,'committed','{"answer_sha256":"83331a5e274ed68d54e09fd859e39f92c0e833301485dbef3cfc216f778db5bd","permit":"6-0000000000000000"}','adc19a9e5c0f9822230966ac27efdb60dfe6364d37830d13e4ce023486c89535','6df70986f4d3c1e417af4cacc681570460d046deb0f5e1d4b7037db158dc6a0f');
INSERT INTO "journal" VALUES(8,1700000014000000,0,'answer-released','{"bytes":10,"data_version":"1","permit":"6-0000000000000000","plan_sha256":"e004ebd5b5532a4b85984a62f8ad48a81aa3460c1ca07701f386135d72cdecf5","sha256":"83331a5e274ed68d54e09fd859e39f92c0e833301485dbef3cfc216f778db5bd"}','6df70986f4d3c1e417af4cacc681570460d046deb0f5e1d4b7037db158dc6a0f','f3cc8bb4dfa1377e852a52c03c135121bee4e72cfa5cab39891ec300446c0ee8');
INSERT INTO "journal" VALUES(9,1700000014000000,0,'checkpoint','{"scopes":{"[\"labs\",\"dataset\",\"\"]":{"definition":"{\"cap\":{\"delta\":0.0,\"epsilon\":1.0,\"filter\":\"pure\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":5,"totals":"[[\"0\",\"0\"]]"},"[\"visits\",\"analyst\",\"ana\"]":{"definition":"{\"cap\":{\"delta\":1e-07,\"epsilon\":1.0,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":6,"totals":"[[\"132922799578491594669078335511855104\",\"0\"],[\"6640607061793436507705210040221696\",\"0\"]]"},"[\"visits\",\"analyst\",\"bob\"]":{"definition":"{\"cap\":{\"delta\":1e-07,\"epsilon\":0.5,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":3,"totals":"[[\"0\",\"0\"],[\"0\",\"0\"]]"},"[\"visits\",\"dataset\",\"\"]":{"definition":"{\"cap\":{\"delta\":1e-06,\"epsilon\":3.0,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":true,\"per_epoch\":false,\"starts\":null}","record":6,"totals":"[[\"132922799578491594669078335511855104\",\"0\"],[\"6640607061793436507705210040221696\",\"0\"]]"},"[\"visits\",\"epoch\",\"2024\"]":{"definition":"{\"cap\":{\"delta\":1e-06,\"epsilon\":3.0,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":6,"totals":"[[\"132922799578491594669078335511855104\",\"0\"],[\"6640607061793436507705210040221696\",\"0\"]]"}}}','f3cc8bb4dfa1377e852a52c03c135121bee4e72cfa5cab39891ec300446c0ee8','188775144cb56cffd61ad1308b76c88f15a89ae3bf665c08886f85a58326ee12');
INSERT INTO "journal" VALUES(10,1700000015000000,0,'reserved','{"analysts":["ana"],"charged":{"[\"visits\",\"analyst\",\"ana\"]":[["289972913145377636197782087308148736","12980742146337069342916608"],["820511108509210951136987620311040","0"]],"[\"visits\",\"dataset\",\"\"]":[["272532510251070865648407418012434432","129807421463370702019100672"],["820511108509210951136987620311040","0"]],"[\"visits\",\"epoch\",\"2024\"]":[["272532510251070865648407418012434432","129807421463370702019100672"],["820511108509210951136987620311040","0"]]},"cost":{"delta":9.765625000000001e-11,"epsilon":0.20503067277795262,"rho":0.0006172839506172868},"dataset":"visits","epochs":["2024"],"event":{"count":10,"event":{"kind":"gaussian","relation":"add-remove","sigma":90.0,"version":1},"kind":"repeated","version":1},"is_plan":true,"key":null,"permit":"10-0000000000000001","purpose":""}','188775144cb56cffd61ad1308b76c88f15a89ae3bf665c08886f85a58326ee12','ebdff479ac0704e06c8ac1936ef9f164fce86c26b08211721a64b3a7c0ebe80c');
INSERT INTO "journal" VALUES(11,1700000016000000,0,'refunded','{"permit":"10-0000000000000001","ran":{"count":4,"event":{"kind":"gaussian","relation":"add-remove","sigma":90.0,"version":1},"kind":"repeated","version":1},"returned":{"[\"visits\",\"analyst\",\"ana\"]":[["0","0"],["492306665105526570682192572186624","0"]],"[\"visits\",\"dataset\",\"\"]":[["0","0"],["492306665105526570682192572186624","0"]],"[\"visits\",\"epoch\",\"2024\"]":[["0","0"],["492306665105526570682192572186624","0"]]}}','ebdff479ac0704e06c8ac1936ef9f164fce86c26b08211721a64b3a7c0ebe80c','f6ff5711d636c2ea410541b636b47997bea5d56d95239adf509f79fb7a114638');
INSERT INTO "journal" VALUES(12,1700000017000000,0,'reserved','{"analysts":[],"charged":{"[\"labs\",\"dataset\",\"\"]":[["332306998946228968225951765070086144","0"]]},"cost":{"delta":0.0,"epsilon":0.25,"rho":0.03108825044289916},"dataset":"labs","epochs":[],"event":{"epsilon":0.25,"kind":"laplace","relation":"add-remove","version":1},"is_plan":false,"key":"k2","permit":"12-0000000000000002","purpose":""}','f6ff5711d636c2ea410541b636b47997bea5d56d95239adf509f79fb7a114638','55ef78a63e111d4a96b40f2575b3565158dc34ddda47bfb86208e2ae7e16d86a');
INSERT INTO "journal" VALUES(13,1700000018000000,0,'reserved','{"analysts":[],"charged":{"[\"labs\",\"dataset\",\"\"]":[["66461399789245797334539167755927552","0"]]},"cost":{"delta":0.0,"epsilon":0.05,"rho":0.0012497396484210388},"dataset":"labs","epochs":[],"event":{"epsilon":0.05,"kind":"laplace","relation":"add-remove","version":1},"is_plan":false,"key":null,"permit":"13-0000000000000003","purpose":""}','55ef78a63e111d4a96b40f2575b3565158dc34ddda47bfb86208e2ae7e16d86a','e7e524543a654465b277eab1417926abd8e4d47fa5a58c80005c8e19cc6bba8b');
INSERT INTO "journal" VALUES(14,1700000019000000,0,'annotated','{"note":"the worker was killed","permit":"13-0000000000000003"}','e7e524543a654465b277eab1417926abd8e4d47fa5a58c80005c8e19cc6bba8b','22e49226268851475d09c89a024deaf070020f34bb822e6487a6b77fae9c7196');
INSERT INTO "journal" VALUES(15,1700000020000000,0,'request-filed','{"analyst":"ana","cost":{"delta":0,"epsilon":0.2,"rho":0},"dataset":"visits","reason":"more","request":"15-0000000000000004"}','22e49226268851475d09c89a024deaf070020f34bb822e6487a6b77fae9c7196','9042620c380de9a55aedc4208d00dc1a05e33b219cfe78466abc7bbb67e4f4e4');
INSERT INTO "journal" VALUES(16,1700000021000000,0,'request-decided','{"by":"carl","cap":{"delta":1e-07,"epsilon":1.2,"filter":"zcdp","order":null,"relation":"add-remove"},"granted":true,"note":"fine","request":"15-0000000000000004","scope":"[\"visits\",\"analyst\",\"ana\"]"}','9042620c380de9a55aedc4208d00dc1a05e33b219cfe78466abc7bbb67e4f4e4','1cbc142b43be121dd0ceed77efcdcb228c6ccc4c16d7b57233d3dd90d6976d6f');
INSERT INTO "journal" VALUES(17,1700000022000000,0,'request-filed','{"analyst":"bob","cost":{"delta":0,"epsilon":0.2,"rho":0},"dataset":"visits","reason":"more","request":"17-0000000000000005"}','1cbc142b43be121dd0ceed77efcdcb228c6ccc4c16d7b57233d3dd90d6976d6f','8337590ea512dab7dfbd88d34f8e15ed79b68b4d1b49b6a44e27f65d4aedb913');
INSERT INTO "journal" VALUES(18,1700000022000000,0,'checkpoint','{"scopes":{"[\"labs\",\"dataset\",\"\"]":{"definition":"{\"cap\":{\"delta\":0.0,\"epsilon\":1.0,\"filter\":\"pure\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":13,"totals":"[[\"398768398735474765560490932826013696\",\"0\"]]"},"[\"visits\",\"analyst\",\"ana\"]":{"definition":"{\"cap\":{\"delta\":1e-07,\"epsilon\":1.2,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":16,"totals":"[[\"422895712723869230866860422820003840\",\"12980742146337069342916608\"],[\"6968811505197120888160005088346112\",\"0\"]]"},"[\"visits\",\"analyst\",\"bob\"]":{"definition":"{\"cap\":{\"delta\":1e-07,\"epsilon\":0.5,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":3,"totals":"[[\"0\",\"0\"],[\"0\",\"0\"]]"},"[\"visits\",\"dataset\",\"\"]":{"definition":"{\"cap\":{\"delta\":1e-06,\"epsilon\":3.0,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":true,\"per_epoch\":false,\"starts\":null}","record":11,"totals":"[[\"405455309829562460317485753524289536\",\"129807421463370702019100672\"],[\"6968811505197120888160005088346112\",\"0\"]]"},"[\"visits\",\"epoch\",\"2024\"]":{"definition":"{\"cap\":{\"delta\":1e-06,\"epsilon\":3.0,\"filter\":\"zcdp\",\"order\":null,\"relation\":\"add-remove\"},\"ends\":null,\"has_epochs\":false,\"per_epoch\":false,\"starts\":null}","record":11,"totals":"[[\"405455309829562460317485753524289536\",\"129807421463370702019100672\"],[\"6968811505197120888160005088346112\",\"0\"]]"}}}','8337590ea512dab7dfbd88d34f8e15ed79b68b4d1b49b6a44e27f65d4aedb913','0e90ae84bb0059fb1dceb9080ba4f70341019b34a2cf18e99fc8d574c460a8ee');
INSERT INTO "journal" VALUES(19,1700000023000000,0,'request-decided','{"by":"carl","granted":false,"note":"","request":"17-0000000000000005"}','0e90ae84bb0059fb1dceb9080ba4f70341019b34a2cf18e99fc8d574c460a8ee','ab04929cae307f74949a7d3cfed2136aa24f132a4f555e30c90fcdd4be6c8db5');
INSERT INTO "journal" VALUES(20,1700000024000000,0,'request-filed','{"analyst":"bob","cost":{"delta":0,"epsilon":0.1,"rho":0},"dataset":"visits","reason":"still more","request":"20-0000000000000006"}','ab04929cae307f74949a7d3cfed2136aa24f132a4f555e30c90fcdd4be6c8db5','911de739c3a3c22baa885eaac42848322dee2a0303cdb006188e9295ea90cb36');
INSERT INTO "journal" VALUES(21,1700000025000000,0,'committed','{"answer_sha256":"b0bf340a7ac508613c9ea1f0c6d43f10c1e0dbff3e7d157c738c87aa3a446804","permit":"10-0000000000000001"}','911de739c3a3c22baa885eaac42848322dee2a0303cdb006188e9295ea90cb36','3fa65522f93578bbb86b0f73f70ed236ef9505b156cfe5e9f2df56fc6acdac67');
INSERT INTO "journal" VALUES(22,1700000025000000,0,'answer-released','{"bytes":10,"data_version":"1","permit":"10-0000000000000001","plan_sha256":"ebbb5b332060a3ede7047bd7528883b0a560e729848f9feb8ff742145e909b01","sha256":"b0bf340a7ac508613c9ea1f0c6d43f10c1e0dbff3e7d157c738c87aa3a446804"}','3fa65522f93578bbb86b0f73f70ed236ef9505b156cfe5e9f2df56fc6acdac67','29daab46d6bc4a9a898a5f7a3bb8847657fdcb6d0b348bd0530032f156c7200a');
CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at_us BIGINT NOT NULL);
INSERT INTO "migrations" VALUES(1,'initial','396109195fda1f5829454907ef55bd6c26dd6b0d7fd7a9ea70d1efb30cc96faa',1794877390201492);
CREATE TABLE permits (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    key TEXT,
    record INTEGER NOT NULL REFERENCES journal (number),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'committed')),
    is_refunded INTEGER NOT NULL CHECK (is_refunded IN (0, 1)),
    answer_sha256 TEXT,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "permits" VALUES('10-0000000000000001','visits',NULL,10,'committed',1,'b0bf340a7ac508613c9ea1f0c6d43f10c1e0dbff3e7d157c738c87aa3a446804','');
INSERT INTO "permits" VALUES('12-0000000000000002','labs','k2',12,'reserved',0,NULL,'');
INSERT INTO "permits" VALUES('13-0000000000000003','labs',NULL,13,'reserved',0,NULL,'the worker was killed');
INSERT INTO "permits" VALUES('6-0000000000000000','visits','k1',6,'committed',0,'83331a5e274ed68d54e09fd859e39f92c0e833301485dbef3cfc216f778db5bd','');
CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    analyst TEXT NOT NULL,
    record INTEGER NOT NULL REFERENCES journal (number),
    state TEXT NOT NULL CHECK (state IN ('filed', 'granted', 'declined')),
    decision INTEGER REFERENCES journal (number)
) STRICT, WITHOUT ROWID;
INSERT INTO "requests" VALUES('15-0000000000000004','visits','ana',15,'granted',16);
INSERT INTO "requests" VALUES('17-0000000000000005','visits','bob',17,'declined',19);
INSERT INTO "requests" VALUES('20-0000000000000006','visits','bob',20,'filed',NULL);
CREATE TABLE scopes (
    key TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    definition TEXT NOT NULL,
    totals TEXT NOT NULL,
    record INTEGER NOT NULL REFERENCES journal (number),
    seal TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "scopes" VALUES('["labs","dataset",""]','labs','{"cap":{"delta":0.0,"epsilon":1.0,"filter":"pure","order":null,"relation":"add-remove"},"ends":null,"has_epochs":false,"per_epoch":false,"starts":null}','[["398768398735474765560490932826013696","0"]]',13,'321b8619dca5e83e95bf58315216f8c8b890335805b169e371826bcb4859b31e');
INSERT INTO "scopes" VALUES('["visits","analyst","ana"]','visits','{"cap":{"delta":1e-07,"epsilon":1.2,"filter":"zcdp","order":null,"relation":"add-remove"},"ends":null,"has_epochs":false,"per_epoch":false,"starts":null}','[["422895712723869230866860422820003840","12980742146337069342916608"],["6968811505197120888160005088346112","0"]]',16,'e6971f164a3b523621fda7011e3ed4cac01c74db77779d28a37986bb40c4521f');
INSERT INTO "scopes" VALUES('["visits","analyst","bob"]','visits','{"cap":{"delta":1e-07,"epsilon":0.5,"filter":"zcdp","order":null,"relation":"add-remove"},"ends":null,"has_epochs":false,"per_epoch":false,"starts":null}','[["0","0"],["0","0"]]',3,'f96e03029ac078322abd61eb04c5ab0767ab1e7f0774ecefc64a2d460c6688b8');
INSERT INTO "scopes" VALUES('["visits","dataset",""]','visits','{"cap":{"delta":1e-06,"epsilon":3.0,"filter":"zcdp","order":null,"relation":"add-remove"},"ends":null,"has_epochs":true,"per_epoch":false,"starts":null}','[["405455309829562460317485753524289536","129807421463370702019100672"],["6968811505197120888160005088346112","0"]]',11,'93537b2c823deea0a6baeec1ce53985c9706cb2e8d578ad2a7b0d9ea258fe7c3');
INSERT INTO "scopes" VALUES('["visits","epoch","2024"]','visits','{"cap":{"delta":1e-06,"epsilon":3.0,"filter":"zcdp","order":null,"relation":"add-remove"},"ends":null,"has_epochs":false,"per_epoch":false,"starts":null}','[["405455309829562460317485753524289536","129807421463370702019100672"],["6968811505197120888160005088346112","0"]]',11,'00ad552769be2c025316ba29ab902e6e375851cc111097ee7be50dd86bef59fa');
CREATE INDEX scopes_of_dataset ON scopes (dataset);
CREATE UNIQUE INDEX permits_by_key ON permits (dataset, key) WHERE key IS NOT NULL;
CREATE INDEX permits_open ON permits (record) WHERE state = 'reserved';
CREATE INDEX requests_by_record ON requests (record);
COMMIT;
