PRAGMA application_id=1464357712;
PRAGMA user_version=15;
CREATE TABLE agent (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  definition TEXT NOT NULL,
  state TEXT NOT NULL,
  started INTEGER NOT NULL,
  sleep TEXT,
  reason TEXT NOT NULL,
  own_tools TEXT NOT NULL,
  created_at REAL NOT NULL, started_at REAL, paused_limit TEXT,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE TABLE agent_total (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  tasks INTEGER NOT NULL,
  usage TEXT NOT NULL,
  active_at REAL NOT NULL,
  PRIMARY KEY (session_id, agent_id)
) WITHOUT ROWID;
CREATE TABLE approval (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL,
  digest TEXT NOT NULL,
  state TEXT NOT NULL,
  requested_at REAL NOT NULL,
  decided_at REAL,
  decided_by TEXT,
  reason TEXT NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE TABLE deletion (session_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE event (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  sender TEXT NOT NULL,
  cause TEXT NOT NULL,
  data TEXT NOT NULL,
  woken INTEGER NOT NULL,
  notified INTEGER NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
);
CREATE TABLE limits (session_id TEXT PRIMARY KEY, stated TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE link (
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  count INTEGER NOT NULL,
  last_at REAL NOT NULL,
  PRIMARY KEY (session_id, kind, sender, recipient)
) WITHOUT ROWID;
CREATE TABLE lock (
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  token INTEGER NOT NULL,
  agent_id TEXT,
  task_id TEXT,
  acquired_at REAL,
  expires_at REAL, holder TEXT,
  PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
CREATE TABLE mail (
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  cause TEXT NOT NULL,
  priority TEXT NOT NULL,
  reply_to TEXT,
  state TEXT NOT NULL,
  task_id TEXT,
  created_at REAL NOT NULL,
  read_at REAL, awaited INTEGER NOT NULL DEFAULT 0, origin TEXT,
  PRIMARY KEY (session_id, id)
);
CREATE TABLE message (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  room_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  sender TEXT NOT NULL,
  text TEXT NOT NULL,
  mentions TEXT NOT NULL,
  asked TEXT NOT NULL,
  task_id TEXT,
  hops INTEGER NOT NULL,
  cause TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, room_id, number)
) WITHOUT ROWID;
CREATE TABLE notification (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  cause TEXT NOT NULL,
  at REAL NOT NULL,
  params TEXT NOT NULL, shape INTEGER, told BLOB,
  PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;
CREATE TABLE room (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  members TEXT NOT NULL,
  hop_limit INTEGER NOT NULL,
  last_number INTEGER NOT NULL,
  seen TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE TABLE schedule (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  definition TEXT NOT NULL,
  agent_id TEXT,
  paused INTEGER NOT NULL,
  next_at REAL,
  last_at REAL,
  fired INTEGER NOT NULL,
  cause TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE TABLE session (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  owner TEXT NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE shape (
  number INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  cause TEXT NOT NULL,
  parts TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE step (
  session_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  call TEXT,
  answer TEXT,
  result TEXT,
  error TEXT,
  retry_at REAL,
  started_at REAL NOT NULL,
  finished_at REAL, requests INTEGER NOT NULL DEFAULT 0, request_seconds REAL NOT NULL DEFAULT 0, outage_seconds REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, task_id, number)
) WITHOUT ROWID;
CREATE TABLE task (
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  prompt TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  cause TEXT NOT NULL,
  priority TEXT NOT NULL,
  state TEXT NOT NULL,
  mail_id TEXT,
  parent_id TEXT,
  continuation INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  progress_percent REAL,
  progress_note TEXT NOT NULL,
  result TEXT,
  error TEXT,
  usage TEXT NOT NULL,
  created_at REAL NOT NULL,
  started_at REAL,
  finished_at REAL, root_id TEXT, origin TEXT, not_before REAL, restarts INTEGER NOT NULL DEFAULT 0, dismissed_at REAL,
  PRIMARY KEY (session_id, id)
);
CREATE TABLE thread (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  id TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  tasks INTEGER NOT NULL,
  first_at REAL NOT NULL,
  last_at REAL NOT NULL,
  PRIMARY KEY (session_id, agent_id, id)
) WITHOUT ROWID;
CREATE TABLE timer (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  due_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE TABLE wait (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  target TEXT NOT NULL,
  target_agent TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  deadline_at REAL NOT NULL,
  ttl_seconds REAL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE INDEX task_by_thread ON task (session_id, agent_id, thread_id, arrival);
CREATE INDEX task_open ON task (session_id) WHERE state IN ('queued', 'running');
CREATE UNIQUE INDEX mail_by_sender ON mail (session_id, sender, sequence);
CREATE INDEX mail_by_recipient ON mail (session_id, recipient, arrival);
CREATE INDEX mail_dead ON mail (session_id) WHERE state = 'dead';
CREATE INDEX task_by_root ON task (session_id, root_id) WHERE root_id IS NOT NULL;
CREATE INDEX event_by_time ON event (session_id, created_at);
CREATE UNIQUE INDEX message_by_id ON message (session_id, id);
CREATE INDEX session_by_owner ON session (owner, created_at, id);
CREATE INDEX mail_open ON mail (session_id) WHERE state IN ('queued', 'delivered') AND recipient <> 'user';
CREATE INDEX task_by_session ON task (session_id);
CREATE INDEX task_by_agent ON task (session_id, agent_id, arrival, created_at);
CREATE INDEX approval_by_time ON approval (session_id, requested_at, id);
CREATE INDEX approval_of_task ON approval (session_id, task_id);
CREATE INDEX mail_inbox ON mail (session_id, arrival) WHERE recipient='user' AND state NOT IN ('archived', 'dead');
CREATE INDEX task_dead ON task (session_id, finished_at) WHERE state IN ('dead', 'failed');
CREATE INDEX task_dead_letter ON task (session_id, arrival, agent_id)
WHERE state IN ('dead', 'failed') AND dismissed_at IS NULL;
INSERT INTO agent VALUES('default','ann','{"tools":["look_up"]}','active',1,NULL,'','[]',1794934336.1891718,1794934336.1891718,NULL);
INSERT INTO agent VALUES('default','ben','{}','paused',1,NULL,'','["look_up","old_tool","pay"]',1794934336.2471457,1794934336.2471457,NULL);
INSERT INTO agent VALUES('default','clerk','{"description":"Files things.","prompt":"You are the clerk of the first day.","tools":["send_mail"]}','stopped',0,NULL,'','[]',1794934336.2610943,1794934336.2610943,NULL);
INSERT INTO agent VALUES('default','max','{"tools":["old_tool"]}','active',1,NULL,'','[]',1794934336.2284954,1794934336.2284954,NULL);
INSERT INTO agent VALUES('default','pam','{"tools":["pay"]}','active',1,NULL,'','[]',1794934336.209367,1794934336.209367,NULL);
INSERT INTO agent VALUES('default','una','{"tools":["send_mail_with_switch"]}','active',1,NULL,'','[]',1794934336.2188172,1794934336.2188172,NULL);
INSERT INTO agent_total VALUES('default','ann',2,'{"input_tokens":58,"output_tokens":1,"cost_usd":0.0,"model_calls":2,"wall_seconds":0.000216,"cpu_seconds":0.0}',1794934336.2946913);
INSERT INTO approval VALUES('default','spend.2','pam','spend','pay','{"amount":5}','86f0024414c45f9bb7a1ef55d001086268c0b5ba71c7535d8d6f0e9697276609','pending',1794934336.3159146,NULL,NULL,'');
INSERT INTO link VALUES('default','mail','una','ben',1,1794934336.3326547);
INSERT INTO link VALUES('default','mail','user','clerk',1,1794934336.3606951);
INSERT INTO link VALUES('default','switch','una','ben',1,1794934336.3326547);
INSERT INTO mail VALUES('ask.2~mail','default','ask','una',1,'ben','well?','What do you think?',7,'task:ask','normal',NULL,'queued',NULL,1794934336.3326547,NULL,1,'{"root_id":"ask"}');
INSERT INTO mail VALUES('filed','default','filed','user',1,'clerk','Please','file this',11,'user:user','normal',NULL,'queued',NULL,1794934336.3606951,NULL,0,NULL);
INSERT INTO notification VALUES('default',1,'','',1794934336.1891718,'',1,X'95A9757365723A75736572A3616E6EA3616E6EA0C0');
INSERT INTO notification VALUES('default',2,'','',1794934336.1891718,'',2,X'93A9757365723A75736572A3616E6EA0');
INSERT INTO notification VALUES('default',3,'','',1794934336.209367,'',1,X'95A9757365723A75736572A370616DA370616DA0C0');
INSERT INTO notification VALUES('default',4,'','',1794934336.209367,'',2,X'93A9757365723A75736572A370616DA0');
INSERT INTO notification VALUES('default',5,'','',1794934336.2188172,'',1,X'95A9757365723A75736572A3756E61A3756E61A0C0');
INSERT INTO notification VALUES('default',6,'','',1794934336.2188172,'',2,X'93A9757365723A75736572A3756E61A0');
INSERT INTO notification VALUES('default',7,'','',1794934336.2284954,'',1,X'95A9757365723A75736572A36D6178A36D6178A0C0');
INSERT INTO notification VALUES('default',8,'','',1794934336.2284954,'',2,X'93A9757365723A75736572A36D6178A0');
INSERT INTO notification VALUES('default',9,'','',1794934336.2471457,'',1,X'95A9757365723A75736572A362656EA362656EA0C0');
INSERT INTO notification VALUES('default',10,'','',1794934336.2471457,'',2,X'93A9757365723A75736572A362656EA0');
INSERT INTO notification VALUES('default',11,'','',1794934336.2610943,'',1,X'95A9757365723A75736572A5636C65726BA5636C65726BAD46696C6573207468696E67732EC0');
INSERT INTO notification VALUES('default',12,'','',1794934336.2610943,'',2,X'93A9757365723A75736572A5636C65726BA0');
INSERT INTO notification VALUES('default',13,'','',1794934336.2648513,'',3,X'9AA9757365723A75736572A3616E6EA473616964A474616C6BAB757365725F70726F6D7074A66E6F726D616CAD73617920736F6D657468696E67C0C0C0');
INSERT INTO notification VALUES('default',14,'','',1794934336.2653318,'',4,X'9AA97461736B3A73616964A3616E6EA469646C65A6616374697665A4776F726BC0C0C0C0C0');
INSERT INTO notification VALUES('default',15,'','',1794934336.2653318,'',5,X'99C0A3616E6EA473616964A474616C6BAB757365725F70726F6D707401C0C0C0');
INSERT INTO notification VALUES('default',16,'','',1794934336.2653318,'',6,X'98C0A3616E6EA473616964A22E31A56D6F64656CC0C0C0');
INSERT INTO notification VALUES('default',17,'','',1794934336.273433,'',7,X'9CC0A3616E6EA473616964A22E31A56D6F64656CA4646F6E65C0933A01CB0000000000000000C0C0C0C0');
INSERT INTO notification VALUES('default',18,'','',1794934336.273433,'',8,X'94C0A3616E6EA47361696493A0A0A4646F6E65');
INSERT INTO notification VALUES('default',19,'','',1794934336.273433,'',4,X'9AA97461736B3A73616964A3616E6EA6616374697665A469646C65A472657374C0C0C0C0C0');
INSERT INTO notification VALUES('default',20,'','',1794934336.286649,'',3,X'9AA9757365723A75736572A3616E6EA464656164C3AB757365725F70726F6D7074A66E6F726D616CA46661696CC0C0C0');
INSERT INTO notification VALUES('default',21,'','',1794934336.286741,'',4,X'9AA97461736B3A64656164A3616E6EA469646C65A6616374697665A4776F726BC0C0C0C0C0');
INSERT INTO notification VALUES('default',22,'','',1794934336.286741,'',5,X'99C0A3616E6EA464656164C3AB757365725F70726F6D707401C0C0C0');
INSERT INTO notification VALUES('default',23,'','',1794934336.286741,'',6,X'98C0A3616E6EA464656164A22E31A56D6F64656CC0C0C0');
INSERT INTO notification VALUES('default',24,'','',1794934336.2946913,'',7,X'9CC0A3616E6EA464656164A22E31A56D6F64656CA66661696C6564C0C0C0C092AD6D6F64656C5F72656675736564A34E6F2EC0');
INSERT INTO notification VALUES('default',25,'','',1794934336.2946913,'',9,X'95C0A3616E6EA464656164A66661696C656492AD6D6F64656C5F72656675736564A34E6F2E');
INSERT INTO notification VALUES('default',26,'','',1794934336.2946913,'',4,X'9AA97461736B3A64656164A3616E6EA6616374697665A469646C65A472657374C0C0C0C0C0');
INSERT INTO notification VALUES('default',27,'','',1794934336.3027258,'',10,X'93A9757365723A75736572A362656EA0');
INSERT INTO notification VALUES('default',28,'','',1794934336.3027258,'',4,X'9AA9757365723A75736572A362656EA469646C65A6706175736564A57061757365C0C0C0C0C0');
INSERT INTO notification VALUES('default',29,'','',1794934336.3090487,'',3,X'9AA9757365723A75736572A3616E6EA87265736561726368C3AB757365725F70726F6D7074A66E6F726D616CB072657365617263682C20706C65617365C0C0C0');
INSERT INTO notification VALUES('default',30,'','',1794934336.3091416,'',4,X'9AAD7461736B3A7265736561726368A3616E6EA469646C65A6616374697665A4776F726BC0C0C0C0C0');
INSERT INTO notification VALUES('default',31,'','',1794934336.3091416,'',5,X'99C0A3616E6EA87265736561726368C3AB757365725F70726F6D707401C0C0C0');
INSERT INTO notification VALUES('default',32,'','',1794934336.3091416,'',6,X'98C0A3616E6EA87265736561726368A22E31A56D6F64656CC0C0C0');
INSERT INTO notification VALUES('default',33,'','',1794934336.3103933,'',7,X'9CC0A3616E6EA87265736561726368A22E31A56D6F64656CA4646F6E65C0930A05C0C0C0C0C0');
INSERT INTO notification VALUES('default',34,'','',1794934336.3103933,'',6,X'98C0A3616E6EA87265736561726368A22E32A4746F6F6CA76C6F6F6B5F7570C0C0');
INSERT INTO notification VALUES('default',35,'','',1794934336.3106203,'',3,X'9AA9757365723A75736572A370616DA57370656E64C3AB757365725F70726F6D7074A66E6F726D616CAF7370656E6420736F6D657468696E67C0C0C0');
INSERT INTO notification VALUES('default',36,'','',1794934336.3106694,'',4,X'9AAA7461736B3A7370656E64A370616DA469646C65A6616374697665A4776F726BC0C0C0C0C0');
INSERT INTO notification VALUES('default',37,'','',1794934336.3106694,'',5,X'99C0A370616DA57370656E64C3AB757365725F70726F6D707401C0C0C0');
INSERT INTO notification VALUES('default',38,'','',1794934336.3106694,'',6,X'98C0A370616DA57370656E64A22E31A56D6F64656CC0C0C0');
INSERT INTO notification VALUES('default',39,'','',1794934336.3155479,'',7,X'9CC0A3616E6EA87265736561726368A22E32A4746F6F6CA4646F6E65A76C6F6F6B5F7570C0C0C0C0C0');
INSERT INTO notification VALUES('default',40,'','',1794934336.3155479,'',6,X'98C0A3616E6EA87265736561726368A22E33A56D6F64656CC0C0C0');
INSERT INTO notification VALUES('default',41,'','',1794934336.3159146,'',7,X'9CC0A370616DA57370656E64A22E31A56D6F64656CA4646F6E65C0930A05C0C0C0C0C0');
INSERT INTO notification VALUES('default',42,'','',1794934336.3159146,'',11,X'96C0A370616DA57370656E64A77370656E642E32A3706179D94038366630303234343134633435663962623761316566353564303031303836323638633062356261373163373533356438643666306539363937323736363039');
INSERT INTO notification VALUES('default',43,'','',1794934336.3266251,'',3,X'9AA9757365723A75736572A3756E61A361736BC3AB757365725F70726F6D7074A66E6F726D616CA761736B2068696DC0C0C0');
INSERT INTO notification VALUES('default',44,'','',1794934336.3267109,'',4,X'9AA87461736B3A61736BA3756E61A469646C65A6616374697665A4776F726BC0C0C0C0C0');
INSERT INTO notification VALUES('default',45,'','',1794934336.3267109,'',5,X'99C0A3756E61A361736BC3AB757365725F70726F6D707401C0C0C0');
INSERT INTO notification VALUES('default',46,'','',1794934336.3267109,'',6,X'98C0A3756E61A361736BA22E31A56D6F64656CC0C0C0');
INSERT INTO notification VALUES('default',47,'','',1794934336.3326547,'',7,X'9CC0A3756E61A361736BA22E31A56D6F64656CA4646F6E65C0930A05C0C0C0C0C0');
INSERT INTO notification VALUES('default',48,'','',1794934336.3326547,'',12,X'9AA87461736B3A61736BAA61736B2E327E6D61696CA361736BA3756E6101A362656EA577656C6C3FA66E6F726D616CC0C0');
INSERT INTO notification VALUES('default',49,'','',1794934336.3326547,'',13,X'98C0A3756E61A361736BA22E32A362656EAA61736B2E327E6D61696C01CB41DABF21DB154A37');
INSERT INTO notification VALUES('default',50,'','',1794934336.3326547,'',6,X'98C0A3756E61A361736BA22E32A4746F6F6CB573656E645F6D61696C5F776974685F737769746368C0C0');
INSERT INTO notification VALUES('default',51,'','',1794934336.3333468,'',3,X'9AA9757365723A75736572A36D6178A56772696E64C3AB757365725F70726F6D7074A66E6F726D616CAA6772696E642061776179C0C0C0');
INSERT INTO notification VALUES('default',52,'','',1794934336.3333926,'',4,X'9AAA7461736B3A6772696E64A36D6178A469646C65A6616374697665A4776F726BC0C0C0C0C0');
INSERT INTO notification VALUES('default',53,'','',1794934336.3333926,'',5,X'99C0A36D6178A56772696E64C3AB757365725F70726F6D707401C0C0C0');
INSERT INTO notification VALUES('default',54,'','',1794934336.3333926,'',6,X'98C0A36D6178A56772696E64A22E31A56D6F64656CC0C0C0');
INSERT INTO notification VALUES('default',55,'','',1794934336.342365,'',7,X'9CC0A36D6178A56772696E64A22E31A56D6F64656CA4646F6E65C0930A05C0C0C0C0C0');
INSERT INTO notification VALUES('default',56,'','',1794934336.342365,'',6,X'98C0A36D6178A56772696E64A22E32A4746F6F6CA86F6C645F746F6F6CC0C0');
INSERT INTO notification VALUES('default',57,'','',1794934336.3426032,'',3,X'9AA9757365723A75736572A362656EA6717565756564C3AB757365725F70726F6D7074A66E6F726D616CAB7761697420666F72206D65C0C0C0');
INSERT INTO notification VALUES('default',58,'','',1794934336.3547587,'',14,X'93A9757365723A75736572A5636C65726BA0');
INSERT INTO notification VALUES('default',59,'','',1794934336.3547587,'',4,X'9AA9757365723A75736572A5636C65726BA469646C65A773746F70706564A473746F70C0C0C0C0C0');
INSERT INTO notification VALUES('default',60,'','',1794934336.3606951,'',12,X'9AA9757365723A75736572A566696C6564C3A47573657201A5636C65726BA6506C65617365A66E6F726D616CC0C0');
INSERT INTO notification VALUES('default',61,'','',1794934336.3757877,'',15,X'9CA9757365723A75736572A56461696C79A362656EA9302039202A202A202AC0A3555443AC676F6F64206D6F726E696E67C0A46E756C6CA46F6E6365C0CB41DABF5A44000000');
INSERT INTO notification VALUES('default',62,'','',1794934336.3865664,'',16,X'96A9757365723A75736572A56C6F626279A567726F7570A45465616D92A3616E6EA362656E04');
INSERT INTO room VALUES('default','lobby','group','Team','["ann","ben"]',4,0,'{}',1794934336.3865664);
INSERT INTO schedule VALUES('default','daily','{"cron":"0 9 * * *","prompt":"good morning"}','ben',0,1794992400.0,NULL,0,'user:user',1794934336.3758004);
INSERT INTO shape VALUES(1,'agent.created','','[["agentId",false,false,"","",false,[]],["name",false,false,"","",false,[]],["description",false,false,"","",false,[]],["createdBy",true,false,"","",false,[]]]');
INSERT INTO shape VALUES(2,'agent.started','','[["agentId",false,false,"","",false,[]],["reason",false,false,"","",false,[]]]');
INSERT INTO shape VALUES(3,'async.task.queued','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["threadId",false,false,"taskId","",false,[]],["kind",false,false,"","",false,[]],["priority",false,false,"","",false,[]],["summary",false,false,"","",false,[]],["mailId",true,false,"","",false,[]],["by",true,false,"","",false,[]],["again",true,false,"","",false,[["state",false,false,"","",false,[]],["createdAt",false,false,"","",false,[]],["startedAt",false,false,"","",false,[]],["progressPercent",false,false,"","",false,[]],["progressNote",false,false,"","",false,[]],["dismissed",true,false,"","",false,[]]]]]');
INSERT INTO shape VALUES(4,'agent.state_changed','','[["agentId",false,false,"","",false,[]],["from",false,false,"","",false,[]],["to",false,false,"","",false,[]],["action",false,false,"","",false,[]],["reason",true,false,"","",false,[]],["sleepingUntil",true,true,"","",false,[]],["wakeEvents",true,false,"","",false,[]],["sleepingByWallClock",true,false,"","",false,[]],["pausedLimit",true,false,"","",false,[]]]');
INSERT INTO shape VALUES(5,'async.task.started','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["threadId",false,false,"taskId","",false,[]],["kind",false,false,"","",false,[]],["attempt",false,false,"","",false,[]],["mailId",false,false,"","",false,[]],["priority",true,false,"","",false,[]],["summary",true,false,"","",false,[]]]');
INSERT INTO shape VALUES(6,'step.started','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["stepId",false,false,"","taskId",false,[]],["kind",false,false,"","",false,[]],["tool",true,false,"","",false,[]],["attempt",true,false,"","",false,[]],["startedAt",true,false,"","",false,[]]]');
INSERT INTO shape VALUES(7,'step.finished','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["stepId",false,false,"","taskId",false,[]],["kind",false,false,"","",false,[]],["state",false,false,"","",false,[]],["tool",true,false,"","",false,[]],["usage",true,false,"","",false,[["inputTokens",false,false,"","",false,[]],["outputTokens",false,false,"","",false,[]],["costUsd",false,false,"","",false,[]]]],["isError",true,false,"","",false,[]],["run",true,false,"","",false,[["sandbox",false,false,"","",false,[]],["wallSeconds",false,false,"","",false,[]],["cpuSeconds",false,false,"","",false,[]],["memoryBytes",false,false,"","",false,[]]]],["error",true,false,"","",false,[["code",false,false,"","",false,[]],["message",false,false,"","",false,[]]]],["requests",true,false,"","",false,[]]]');
INSERT INTO shape VALUES(8,'async.task.completed','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["result",false,false,"","",false,[["analysis",false,false,"","",false,[]],["commentary",false,false,"","",false,[]],["final",false,false,"","",false,[]]]]]');
INSERT INTO shape VALUES(9,'async.task.error','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["state",false,false,"","",false,[]],["error",false,false,"","",false,[["code",false,false,"","",false,[]],["message",false,false,"","",false,[]]]]]');
INSERT INTO shape VALUES(10,'agent.paused','','[["agentId",false,false,"","",false,[]],["reason",false,false,"","",false,[]]]');
INSERT INTO shape VALUES(11,'approval.requested','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["approvalId",false,false,"","",false,[]],["tool",false,false,"","",false,[]],["digest",false,false,"","",false,[]]]');
INSERT INTO shape VALUES(12,'mail.sent','','[["mailId",false,false,"","",false,[]],["threadId",false,false,"mailId","",false,[]],["sender",false,false,"","",false,[]],["sequence",false,false,"","",false,[]],["recipient",false,false,"","",false,[]],["subject",false,false,"","",false,[]],["priority",false,false,"","",false,[]],["replyTo",false,false,"","",false,[]],["givenTo",true,false,"","",false,[]]]');
INSERT INTO shape VALUES(13,'switch.began','taskId','[["agentId",false,false,"","",false,[]],["taskId",false,false,"","",false,[]],["stepId",false,false,"","taskId",false,[]],["toAgent",false,false,"","",false,[]],["mailId",false,false,"","",false,[]],["depth",false,false,"","",false,[]],["deadlineAt",false,false,"","",false,[]]]');
INSERT INTO shape VALUES(14,'agent.stopped','','[["agentId",false,false,"","",false,[]],["reason",false,false,"","",false,[]]]');
INSERT INTO shape VALUES(15,'schedule.created','','[["scheduleId",false,false,"","",false,[]],["agentId",false,false,"","",false,[]],["cron",false,false,"","",false,[]],["intervalSeconds",false,false,"","",false,[]],["zone",false,false,"","",false,[]],["prompt",false,false,"","",false,[]],["event",false,false,"","",false,[]],["data",false,false,"","",true,[]],["missed",false,false,"","",false,[]],["wake",true,false,"","",false,[]],["nextAt",false,false,"","",false,[]]]');
INSERT INTO shape VALUES(16,'room.created','','[["roomId",false,false,"","",false,[]],["kind",false,false,"","",false,[]],["title",false,false,"","",false,[]],["members",false,false,"","",false,[]],["hopLimit",false,false,"","",false,[]]]');
INSERT INTO step VALUES('default','ask',1,'model','done',1,0,NULL,'{"tool_calls":[{"call_id":"c0","name":"send_mail_with_switch","arguments":"{\"to_agent\":\"ben\",\"subject\":\"well?\",\"body\":\"What do you think?\"}"}],"usage":{"input_tokens":10,"output_tokens":5}}',NULL,NULL,NULL,1794934336.3267109,1794934336.3326547,1,9.9e-05,0.0);
INSERT INTO step VALUES('default','ask',2,'tool','started',1,0,'{"call_id":"c0","name":"send_mail_with_switch","arguments":"{\"to_agent\":\"ben\",\"subject\":\"well?\",\"body\":\"What do you think?\"}"}',NULL,NULL,NULL,NULL,1794934336.3326547,NULL,0,0.0,0.0);
INSERT INTO step VALUES('default','dead',1,'model','failed',1,0,NULL,NULL,NULL,'{"code":"model_refused","message":"No."}',NULL,1794934336.286741,1794934336.2946913,1,8.0e-05,0.0);
INSERT INTO step VALUES('default','grind',1,'model','done',1,0,NULL,'{"tool_calls":[{"call_id":"c0","name":"old_tool","arguments":"{\"text\":\"slowly\"}"}],"usage":{"input_tokens":10,"output_tokens":5}}',NULL,NULL,NULL,1794934336.3333926,1794934336.342365,1,0.000157,0.0);
INSERT INTO step VALUES('default','grind',2,'tool','started',1,0,'{"call_id":"c0","name":"old_tool","arguments":"{\"text\":\"slowly\"}"}',NULL,NULL,NULL,NULL,1794934336.342365,NULL,0,0.0,0.0);
INSERT INTO step VALUES('default','research',1,'model','done',1,0,NULL,'{"tool_calls":[{"call_id":"c0","name":"look_up","arguments":"{\"city\":\"Ulm\"}"}],"usage":{"input_tokens":10,"output_tokens":5}}',NULL,NULL,NULL,1794934336.3091416,1794934336.3103933,1,0.00018,0.0);
INSERT INTO step VALUES('default','research',2,'tool','done',1,0,'{"call_id":"c0","name":"look_up","arguments":"{\"city\":\"Ulm\"}"}',NULL,'{"content":"Ulm is fine"}',NULL,NULL,1794934336.3103933,1794934336.3155479,0,0.0,0.0);
INSERT INTO step VALUES('default','research',3,'model','started',1,0,NULL,NULL,NULL,NULL,NULL,1794934336.3155479,NULL,0,0.0,0.0);
INSERT INTO step VALUES('default','said',1,'model','done',1,0,NULL,'{"text":"done","usage":{"input_tokens":58,"output_tokens":1,"cost_usd":0.0},"model":"function"}',NULL,NULL,NULL,1794934336.2653318,1794934336.273433,1,0.000136,0.0);
INSERT INTO step VALUES('default','spend',1,'model','done',1,0,NULL,'{"tool_calls":[{"call_id":"c0","name":"pay","arguments":"{\"amount\":5}"}],"usage":{"input_tokens":10,"output_tokens":5}}',NULL,NULL,NULL,1794934336.3106694,1794934336.3159146,1,0.000231,0.0);
INSERT INTO task VALUES('said','default','ann','talk','user_prompt','say something',1,'user:user','normal','completed',NULL,NULL,0,0,NULL,'','{"analysis":"","commentary":"","final":"done"}',NULL,'{"input_tokens":58,"output_tokens":1,"cost_usd":0.0,"model_calls":1,"wall_seconds":0.000136,"cpu_seconds":0.0}',1794934336.2648513,1794934336.2653318,1794934336.273433,NULL,NULL,NULL,0,NULL);
INSERT INTO task VALUES('dead','default','ann','dead','user_prompt','fail',2,'user:user','normal','failed',NULL,NULL,0,0,NULL,'',NULL,'{"code":"model_refused","message":"No."}','{"model_calls":1,"wall_seconds":0.00008,"cpu_seconds":0.0}',1794934336.286649,1794934336.286741,1794934336.2946913,NULL,NULL,NULL,0,NULL);
INSERT INTO task VALUES('research','default','ann','research','user_prompt','research, please',3,'user:user','normal','running',NULL,NULL,0,1,NULL,'',NULL,NULL,'{}',1794934336.3090487,1794934336.3091416,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO task VALUES('spend','default','pam','spend','user_prompt','spend something',4,'user:user','normal','running',NULL,NULL,0,1,NULL,'',NULL,NULL,'{}',1794934336.3106203,1794934336.3106694,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO task VALUES('ask','default','una','ask','user_prompt','ask him',6,'user:user','normal','running',NULL,NULL,0,1,NULL,'',NULL,NULL,'{}',1794934336.3266251,1794934336.3267109,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO task VALUES('grind','default','max','grind','user_prompt','grind away',9,'user:user','normal','running',NULL,NULL,0,1,NULL,'',NULL,NULL,'{}',1794934336.3333468,1794934336.3333926,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO task VALUES('queued','default','ben','queued','user_prompt','wait for me',10,'user:user','normal','queued',NULL,NULL,0,0,NULL,'',NULL,NULL,'{}',1794934336.3426032,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO thread VALUES('default','ann','dead',2,1,1794934336.286649,1794934336.286649);
INSERT INTO thread VALUES('default','ann','research',3,1,1794934336.3090487,1794934336.3090487);
INSERT INTO thread VALUES('default','ann','talk',1,1,1794934336.2648513,1794934336.2648513);
INSERT INTO thread VALUES('default','ben','queued',10,1,1794934336.3426032,1794934336.3426032);
INSERT INTO thread VALUES('default','max','grind',9,1,1794934336.3333468,1794934336.3333468);
INSERT INTO thread VALUES('default','pam','spend',4,1,1794934336.3106203,1794934336.3106203);
INSERT INTO thread VALUES('default','una','ask',6,1,1794934336.3266251,1794934336.3266251);
INSERT INTO wait VALUES('default','ask.2','reply','una','ask','ask.2~mail','ben',8,1794934636.3326547,NULL,1794934336.3326547);
INSERT INTO wait VALUES('default','spend.2','approval','pam','spend','spend.2','',5,9.0e+999,NULL,1794934336.3159146);
